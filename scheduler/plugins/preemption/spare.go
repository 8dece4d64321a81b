package preemption

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	fit "github.com/gangctl/gangctl/pkg/placement"
)

// settle finds a placement without any of the pool, on the nodes that rank
// highest, and then spares all who are not in its way. It tries that in two
// orders: the most important units first, and of equal ones the small ones first.
func (s *search) settle(pool set, rank func(*corev1.Node) int64) {
	r := s.place(pool, fit.Options{Prefer: rank})
	if !r.Fits() || s.ctx.Err() != nil {
		return
	}
	seats := s.seatsOf(r.Placement)
	near := slices.Clone(pool)
	for i, u := range s.units {
		near[i] = near[i] && slices.ContainsFunc(u.Pods, func(p *corev1.Pod) bool { return seats[p.Spec.NodeName] != nil })
	}
	on := func(n *corev1.Node) bool { return seats[n.Name] != nil }
	for _, order := range [][]int{s.byImportance(), s.bySize()} {
		e := s.spare(near, order, func(try set, u Unit) bool { return s.seated(try, u, seats) })
		result := s.place(e, fit.Options{Node: on})
		if !result.Fits() { // members matter to each other across nodes
			e = s.spare(near, order, func(try set, _ Unit) bool { return s.place(try, fit.Options{Node: on}).Fits() })
			result = s.place(e, fit.Options{Node: on})
		}
		if s.ctx.Err() != nil {
			return // some of them need not go
		}
		s.consider(e, result)
	}
}

// seatsOf are the members of a placement by node.
func (s *search) seatsOf(placement []fit.Assignment) map[string]map[string]int32 {
	seats := map[string]map[string]int32{}
	for _, a := range placement {
		if seats[a.Node] == nil {
			seats[a.Node] = map[string]int32{}
		}
		seats[a.Node][a.Role]++
	}
	return seats
}

// seated tells whether the members have their seats on the nodes of a unit.
func (s *search) seated(e set, u Unit, seats map[string]map[string]int32) bool {
	checked := map[string]bool{}
	for _, pod := range u.Pods {
		node := pod.Spec.NodeName
		if seats[node] == nil || checked[node] {
			continue
		}
		checked[node] = true
		g := fit.Gang{}
		for _, role := range s.Gang.Roles {
			if n := seats[node][role.Name]; n > 0 {
				g.Roles = append(g.Roles, fit.Role{Name: role.Name, Pod: role.Pod, Count: n})
			}
		}
		opts := fit.Options{Budget: s.budget, Node: func(n *corev1.Node) bool { return n.Name == node }}
		if !fit.Place(s.ctx, s.without(e), g, opts).Fits() {
			return false
		}
	}
	return true
}

// spare takes those out of a set, in an order, without whose eviction it is
// still enough. Of a gang as a whole as many members as it can do without may
// stay in.
func (s *search) spare(e set, order []int, enough func(try set, u Unit) bool) set {
	for _, i := range order {
		if !e[i] {
			continue
		}
		u := s.units[i]
		try := slices.Clone(e)
		try[i] = false
		if enough(try, u) {
			e = try
			continue
		}
		if u.Kind != Whole || len(s.surplus[u.Gang]) == 0 {
			continue
		}
		for _, j := range s.surplus[u.Gang] {
			try[j] = true
		}
		for _, j := range order {
			if !slices.Contains(s.surplus[u.Gang], j) {
				continue
			}
			if try[j] = false; !enough(try, s.units[j]) {
				try[j] = true
			}
		}
		if s.allowed(try, u.Gang) {
			e = try
		}
	}
	return e
}

// trim takes those out of the best set that are not needed, wherever members go
// instead.
func (s *search) trim() {
	e := s.spare(s.bestSet, s.byImportance(), func(try set, _ Unit) bool { return s.fits(try) })
	if s.ctx.Err() == nil {
		s.consider(e, s.place(e, fit.Options{}))
	}
}

func (s *search) byImportance() []int {
	order := make([]int, len(s.units))
	for i := range order {
		order[i] = i
	}
	return order
}

// bySize has small units before large ones of the same priority and kind: one
// large victim is better than many small ones.
func (s *search) bySize() []int {
	order := s.byImportance()
	name := s.scarce()
	size := func(i int) (sum int64) {
		for _, pod := range s.units[i].Pods {
			sum += fit.Asked(pod, name)
		}
		return sum
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := s.units[i], s.units[j]
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Kind, a.Kind), cmp.Compare(size(i), size(j)))
	})
	return order
}

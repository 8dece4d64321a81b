package preemption

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// placeOnRanked finds a placement without any of the pool, on the nodes that rank
// highest, and then spares all that are not in its way. It tries that in two
// orders: the most important units first, and of equal ones the small ones first.
func (s *search) placeOnRanked(pool set, rank func(*corev1.Node) int64) {
	r := s.place(pool, placement.Options{Prefer: rank})
	if !r.Fits() || s.ctx.Err() != nil {
		return
	}
	assigned := s.assignedCounts(r.Placement)
	onAssigned := slices.Clone(pool)
	for i, u := range s.units {
		onAssigned[i] = onAssigned[i] && slices.ContainsFunc(u.Pods, func(p *corev1.Pod) bool { return assigned[p.Spec.NodeName] != nil })
	}
	on := func(n *corev1.Node) bool { return assigned[n.Name] != nil }
	for _, order := range [][]int{s.byImportance(), s.bySize()} {
		e := s.spare(onAssigned, order, func(try set, u Unit) bool { return s.stillFits(try, u, assigned) })
		result := s.place(e, placement.Options{Node: on})
		if !result.Fits() { // members matter to each other across nodes
			e = s.spare(onAssigned, order, func(try set, _ Unit) bool { return s.place(try, placement.Options{Node: on}).Fits() })
			result = s.place(e, placement.Options{Node: on})
		}
		if s.ctx.Err() != nil {
			return // some of them need not go
		}
		s.consider(e, result)
	}
}

// assignedCounts are how many members of each role a placement has on a node.
func (s *search) assignedCounts(assignments []placement.Assignment) map[string]map[string]int32 {
	assigned := map[string]map[string]int32{}
	for _, a := range assignments {
		if assigned[a.Node] == nil {
			assigned[a.Node] = map[string]int32{}
		}
		assigned[a.Node][a.Role]++
	}
	return assigned
}

// stillFits reports whether the members assigned there still fit on the nodes of a unit.
func (s *search) stillFits(e set, u Unit, assigned map[string]map[string]int32) bool {
	checked := map[string]bool{}
	for _, pod := range u.Pods {
		node := pod.Spec.NodeName
		if assigned[node] == nil || checked[node] {
			continue
		}
		checked[node] = true
		g := placement.Gang{}
		for _, role := range s.Gang.Roles {
			if n := assigned[node][role.Name]; n > 0 {
				g.Roles = append(g.Roles, placement.Role{Name: role.Name, Pod: role.Pod, Count: n})
			}
		}
		opts := placement.Options{Budget: s.budget, Node: func(n *corev1.Node) bool { return n.Name == node }}
		if !placement.Place(s.ctx, s.without(e), g, opts).Fits() {
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
		if u.Kind != Whole || len(s.aboveMin[u.Gang]) == 0 {
			continue
		}
		for _, j := range s.aboveMin[u.Gang] {
			try[j] = true
		}
		for _, j := range order {
			if !slices.Contains(s.aboveMin[u.Gang], j) {
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
		s.consider(e, s.place(e, placement.Options{}))
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
			sum += request.OfResource(pod, name)
		}
		return sum
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := s.units[i], s.units[j]
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Kind, a.Kind), cmp.Compare(size(i), size(j)))
	})
	return order
}

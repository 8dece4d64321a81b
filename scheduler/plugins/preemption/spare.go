package preemption

import (
	"cmp"
	"context"
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
	onAssigned := s.on(pool, func(name string) bool { return assigned[name] != nil })
	amounts := s.amountsOn(assigned)
	for _, order := range [][]int{s.byImportance(), s.bySize()} {
		e, result := s.spareOn(onAssigned, order, assigned, amounts)
		if s.ctx.Err() != nil {
			return // some of them need not go
		}
		s.consider(e, result)
	}
}

// spareOn takes those out of a set, in an order, who need not go for the members to fit on the nodes that they are assigned to. Amounts decide that
// most often, at no cost; where what is left then is not enough, each node is tried for those that they would spare, and then all of them together.
func (s *search) spareOn(e set, order []int, assigned map[string]map[string]int32, amounts amounts) (spared set, result placement.Result) {
	on := placement.Options{Node: func(n *corev1.Node) bool { return assigned[n.Name] != nil }}
	for _, enough := range []func(try set, u Unit) bool{
		amounts.suffice,
		func(try set, u Unit) bool { return amounts.suffice(try, u) && s.stillFits(try, u, assigned) },
		func(try set, _ Unit) bool { return s.place(try, on).Fits() }, // members matter to each other across nodes
	} {
		spared = s.spare(e, order, enough)
		if result = s.place(spared, on); result.Fits() || s.ctx.Err() != nil {
			break
		}
	}
	return spared, result
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
// stay in. It ends with the time of the search: even to find that out takes time, for
// thousands of units more than there was.
func (s *search) spare(from set, order []int, enough func(try set, u Unit) bool) set {
	e := slices.Clone(from)
	for _, i := range order {
		if s.ctx.Err() != nil {
			break
		}
		if !e[i] {
			continue
		}
		e[i] = false
		if u := s.units[i]; !enough(e, u) && (u.Kind != Whole || !s.spareGang(e, u.Gang, order, enough)) {
			e[i] = true
		}
	}
	return e
}

// spareGang has those members of a gang evicted that have to go for a set to be enough, if the gang can do without them; otherwise the set stays
// as it is.
func (s *search) spareGang(e set, gang string, order []int, enough func(try set, u Unit) bool) bool {
	members := s.aboveMin[gang]
	if len(members) == 0 {
		return false
	}
	for _, i := range members {
		e[i] = true
	}
	for _, i := range order {
		if s.units[i].Gang != gang || !e[i] || s.ctx.Err() != nil {
			continue
		}
		if e[i] = false; !enough(e, s.units[i]) {
			e[i] = true
		}
	}
	if s.allowed(e, gang) {
		return true
	}
	for _, i := range members {
		e[i] = false
	}
	return false
}

// trim takes those out of the best set that are not needed, wherever members go
// instead. Each takes a placement of all members, so that has a part of the time: while it lasts, nothing else is scheduled.
func (s *search) trim() {
	whole := s.ctx
	part, cancel := context.WithTimeout(whole, s.budget/8)
	defer cancel()
	s.ctx = part
	e := s.spare(s.bestSet, s.byImportance(), func(try set, _ Unit) bool { return s.fits(try) })
	if s.ctx = whole; s.ctx.Err() == nil {
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

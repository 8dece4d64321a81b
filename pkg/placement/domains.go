package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// solveAll answers for the cluster: for the best domain of the topology key that the gang must share, if there is one.
func (t *task) solveAll(g Gang) answer {
	key := g.TopologyKey
	if key == "" || t.opts.Ignore.Has(Topology) {
		return t.solveGroup(t.sites)
	}
	fixed := t.boundDomains(g)
	if len(fixed) > 1 { // the members that have a node are in two domains already
		return answer{packing: t.nothing(), proof: Exhausted}
	}
	domains := map[string][]*site{}
	for _, s := range t.sites {
		if value, ok := s.n.obj.Labels[key]; ok && (len(fixed) == 0 || fixed[value]) {
			domains[value] = append(domains[value], s)
		}
	}
	return t.solveEach(domains, t.solveGroup)
}

// solveGroup answers for a gang whose members all want to be with each other, which go to one domain.
func (t *task) solveGroup(sites []*site) answer {
	if len(t.group) == 0 {
		return t.solve(sites)
	}
	domains := map[string][]*site{}
	for _, s := range sites {
		values := make([]string, 0, len(t.group))
		for _, key := range t.group {
			if value, ok := s.n.obj.Labels[key]; ok {
				values = append(values, value)
			}
		}
		if len(values) == len(t.group) {
			name := strings.Join(values, "/")
			domains[name] = append(domains[name], s)
		}
	}
	return t.solveEach(domains, t.solve)
}

// solveEach answers for each domain and chooses the best answer.
func (t *task) solveEach(domains map[string][]*site, solve func([]*site) answer) answer {
	return t.bestOf(t.byRoom(domains), func(value string) answer {
		a := solve(domains[value])
		a.domain = value
		if a.bound != nil {
			a.bound.Domain = value
		}
		return a
	})
}

// bestOf chooses the best of several answers; it stops at one that places the whole gang.
func (t *task) bestOf(names []string, solve func(string) answer) answer {
	best := answer{packing: t.nothing(), proof: CountingBound, bound: &Bound{Need: int64(t.required)}}
	if t.enough(best.packing.placed) {
		best.proof, best.bound = Witness, nil
	}
	unproven, counted, first := false, true, true
	for _, name := range names {
		a := solve(name)
		unproven = unproven || a.proof == BudgetHit
		counted = counted && a.proof == CountingBound
		if first || t.preferred(a, best) {
			best, first = a, false
		}
		if t.full(best.packing.placed) {
			break
		}
	}
	switch {
	case best.proof == Witness:
	case unproven:
		best.proof, best.bound = BudgetHit, nil
	case !counted:
		best.proof, best.bound = Exhausted, nil
	}
	return best
}

// preferred tells whether answer a is better than b: a witness before none, then more members.
func (t *task) preferred(a, b answer) bool {
	if (a.proof == Witness) != (b.proof == Witness) {
		return a.proof == Witness
	}
	return a.packing.total() > b.packing.total()
}

// boundDomains returns the domains of the members that have a node.
func (t *task) boundDomains(g Gang) map[string]bool {
	domains := map[string]bool{}
	for _, uid := range g.Bound {
		if i, ok := t.c.find(uid); ok {
			domains[t.c.nodes[i].obj.Labels[g.TopologyKey]] = true
		}
	}
	return domains
}

// byRoom orders domains by slots, those with the fewest first, so that the gang goes where it leaves the least behind.
func (t *task) byRoom(domains map[string][]*site) []string {
	room := map[string]int{}
	for value, sites := range domains {
		for _, s := range sites {
			for _, n := range s.slots {
				room[value] += n
			}
		}
	}
	return slices.SortedFunc(maps.Keys(domains), func(a, b string) int {
		return cmp.Or(cmp.Compare(room[a], room[b]), cmp.Compare(a, b))
	})
}

package placement

import (
	"slices"
)

// greedy places the classes one after the other, the one that fills most of a node first, each first on sites where it wastes
// nothing that others may want more. It proves nothing if it fails.
func (t *task) greedy(sites []*site) packing {
	p := packing{sites: sites, counts: make([]pattern, len(sites)), placed: make(pattern, len(t.classes))}
	free := make([][]int64, len(sites))
	for _, i := range t.bySize(sites) {
		for _, wasting := range []bool{false, true} {
			for j, s := range sites {
				if p.placed[i] == t.classes[i].count {
					break
				}
				if s.slots[i] == 0 || t.wastes(i, s) != wasting {
					continue
				}
				if p.counts[j] == nil {
					p.counts[j], free[j] = make(pattern, len(t.classes)), slices.Clone(s.free)
				}
				for p.placed[i] < t.classes[i].count && t.addable(s, p.counts[j], free[j], i) {
					p.counts[j][i]++
					p.placed[i]++
					t.classes[i].take(free[j], 1)
				}
			}
		}
	}
	for j := range p.counts {
		if p.counts[j] == nil {
			p.counts[j] = make(pattern, len(t.classes))
		}
	}
	return p
}

// wastes tells whether a site has free devices that a class does not ask for.
func (t *task) wastes(i int, s *site) bool {
	need := t.classes[i].rules.need
	for pos := posScalars; pos < len(s.free); pos++ {
		if s.free[pos] > 0 && need[pos] == 0 {
			return true
		}
	}
	return false
}

// bySize orders the classes by how few of them a site holds at most, large members first.
func (t *task) bySize(sites []*site) []int {
	most := make([]int, len(t.classes))
	classes := make([]int, len(t.classes))
	for i := range t.classes {
		classes[i] = i
		for _, s := range sites {
			most[i] = max(most[i], s.slots[i])
		}
	}
	slices.SortStableFunc(classes, func(a, b int) int { return most[a] - most[b] })
	return classes
}

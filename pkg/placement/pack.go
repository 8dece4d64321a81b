package placement

import (
	"slices"
)

// packing is how many members of each role go to which candidate.
type packing struct {
	candidates []*candidate
	counts     []combination // one a candidate
	placed     combination   // sum by role
	path       []step        // the order in which members have to come, if that matters
}

// step is one member that comes to a candidate.
type step struct {
	candidate *candidate
	role      int
}

// total is how many members are placed.
func (p packing) total() int {
	sum := 0
	for _, n := range p.placed {
		sum += n
	}
	return sum
}

// combination is how many members of each role a candidate takes together.
type combination []int

// pack finds the largest part of the gang that fits on the candidates if only what happens on each node matters, preferring
// parts that make the gang start. exact is false if the budget ended it. Of a gang of too many different members, see packMany, it finds the whole or some part.
// hopeless means that the gang is known not to fit.
//
// Nodes do not depend on each other here, so the numbers of members that fit on a set of nodes are the sums of what fits on
// each. pack builds these sums node by node: for all counts of the other roles, the largest count of the widest role.
func (t *task) pack(candidates []*candidate, hopeless bool) (best packing, exact bool) {
	if len(t.roles) == 0 {
		return t.emptyPacking(), true
	}
	if len(t.roles) == 1 {
		return t.packOne(candidates), true
	}
	candidates = t.useful(candidates)
	first := t.greedy(candidates)
	if t.full(first.placed) {
		return first, true
	}
	table := newDPTable(t)
	if table == nil || len(table.most) > largeTable {
		if best, exact = t.packMany(candidates, first, hopeless); table == nil || t.full(best.placed) {
			return best, exact
		}
	}
	byKind := map[int][]combination{}
	for _, s := range candidates {
		combinations, ok := byKind[s.kind]
		if !ok {
			combinations = t.combinations(s)
			byKind[s.kind] = combinations
		}
		if !table.add(combinations) {
			return first, exact
		}
		if table.complete() {
			break
		}
	}
	return table.best(candidates), true
}

// packMany looks for a placement of a gang for which a table would be large: of all of it, or else what is placed at first. exact is true as well where there is
// none, and the gang needs all of its members. Of a gang that claims devices it is only what is placed at first: each step would have to allocate them.
func (t *task) packMany(candidates []*candidate, first packing, hopeless bool) (best packing, exact bool) {
	steps := (mostSteps - t.completed) / 2 // others of the domains that are tried are to have some, too
	if t.enough(first.placed) || t.crossNode != nil {
		steps = min(steps, fewSteps)
	}
	if hopeless || t.devices != nil || steps < len(t.roles) || t.overdue() {
		return first, false
	}
	x := newCompletion(t, candidates, steps)
	p, found := x.solve()
	if t.completed += x.steps; found {
		return p, true
	}
	return first, !x.cut && t.required == t.members()
}

// packOne fills the candidates in order with one role; what is left for the last candidate goes to the one that it fills best.
func (t *task) packOne(candidates []*candidate) packing {
	p := packing{placed: make(combination, 1)}
	left := t.roles[0].count
	for at, s := range candidates {
		if left == 0 {
			break
		}
		n := s.slots[0]
		if n >= left {
			for _, other := range candidates[at+1:] {
				if other.slots[0] >= left && other.slots[0] < s.slots[0] && other.preference == s.preference {
					s = other
				}
			}
			n = left
		}
		p.candidates = append(p.candidates, s)
		p.counts = append(p.counts, combination{n})
		left -= n
	}
	p.placed[0] = t.roles[0].count - left
	return p
}

// greedy places the roles one after the other, the one that fills most of a node first, each first on candidates where it wastes
// nothing that others may want more. It proves nothing if it fails.
func (t *task) greedy(candidates []*candidate) packing {
	p := packing{candidates: candidates, counts: make([]combination, len(candidates)), placed: make(combination, len(t.roles))}
	free := make([][]int64, len(candidates))
	for _, i := range t.bySize(candidates) {
		for _, wasting := range []bool{false, true} {
			for j, s := range candidates {
				if p.placed[i] == t.roles[i].count {
					break
				}
				if s.slots[i] == 0 || t.wastes(i, s) != wasting {
					continue
				}
				if p.counts[j] == nil {
					p.counts[j], free[j] = make(combination, len(t.roles)), slices.Clone(s.free)
				}
				for p.placed[i] < t.roles[i].count && t.addable(s, p.counts[j], free[j], i) {
					p.counts[j][i]++
					p.placed[i]++
					t.roles[i].take(free[j], 1)
				}
			}
		}
	}
	for j := range p.counts {
		if p.counts[j] == nil {
			p.counts[j] = make(combination, len(t.roles))
		}
	}
	return p
}

// useful leaves out candidates beyond the number that the gang could use of each kind.
func (t *task) useful(candidates []*candidate) []*candidate {
	members := t.members()
	seen := map[int]int{}
	var out []*candidate
	for _, s := range candidates {
		if seen[s.kind]++; seen[s.kind] <= members {
			out = append(out, s)
		}
	}
	return out
}

// combinations returns the combinations of members that a candidate takes and to which no member can be added.
func (t *task) combinations(s *candidate) []combination {
	var out []combination
	counts := make(combination, len(t.roles))
	free := slices.Clone(s.free)
	var fill func(i int)
	fill = func(i int) {
		if t.expired() {
			return
		}
		if i == len(t.roles) {
			if t.maximal(s, counts, free) {
				out = append(out, slices.Clone(counts))
			}
			return
		}
		k := &t.roles[i]
		fill(i + 1)
		for n := 1; n <= s.slots[i] && t.addable(s, counts, free, i); n++ {
			counts[i] = n
			k.take(free, 1)
			fill(i + 1)
		}
		k.take(free, -int64(counts[i]))
		counts[i] = 0
	}
	fill(0)
	return out
}

// addable reports whether one more member of role i fits alongside the others.
func (t *task) addable(s *candidate, counts combination, free []int64, i int) bool {
	if !s.ok[i] || counts[i] >= s.slots[i] {
		return false
	}
	if conflicts := s.conflictsWith(i); conflicts != 0 {
		for j, n := range counts {
			if n > 0 && conflicts&(1<<j) != 0 {
				return false
			}
		}
	}
	for _, c := range t.roles[i].charges {
		if free[c.pos] < c.amount {
			return false
		}
	}
	return t.attach.fits(s, counts, i) && t.devices.fits(s, counts, i)
}

// maximal reports whether no member can be added.
func (t *task) maximal(s *candidate, counts combination, free []int64) bool {
	for i := range counts {
		if t.addable(s, counts, free, i) {
			return false
		}
	}
	return true
}

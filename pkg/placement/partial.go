package placement

import (
	"slices"
)

// partialPlacement is a placement of some members, with the counts of the cross-node constraints in it, so that it is cheap to check
// whether a node accepts one more member.
type partialPlacement struct {
	t          *task
	crossNode  *crossNode
	candidates []*candidate
	free       [][]int64
	counts     []combination // by candidate
	used       []int         // by candidate: members on it
	placed     combination
	members    [][]int   // by key, then domain and role: members there
	matched    []int     // by role: placed members that its affinity counts as existing
	spread     [][][]int // by role, rule, domain: pods counted
	least      [][]int   // by role, rule: what the skew is measured from, -1 if it has to be computed
}

// newPartialPlacement is a placement of no member.
func newPartialPlacement(t *task, candidates []*candidate) *partialPlacement {
	b := &partialPlacement{t: t, crossNode: t.crossNode, candidates: candidates, placed: make(combination, len(t.roles)), matched: make([]int, len(t.roles))}
	for _, s := range candidates {
		b.free = append(b.free, slices.Clone(s.free))
		b.counts = append(b.counts, make(combination, len(t.roles)))
	}
	b.used = make([]int, len(candidates))
	for _, n := range b.crossNode.domains {
		b.members = append(b.members, make([]int, n*len(t.roles)))
	}
	b.spread, b.least = make([][][]int, len(t.roles)), make([][]int, len(t.roles))
	for i, rules := range b.crossNode.spread {
		for _, r := range rules {
			counts := make([]int, len(r.base))
			for d, n := range r.base {
				counts[d] = max(n, 0)
			}
			b.spread[i], b.least[i] = append(b.spread[i], counts), append(b.least[i], -1)
		}
	}
	return b
}

// accepts reports whether a member of role i may be placed on a candidate next.
func (b *partialPlacement) accepts(at, i int) bool {
	if b.placed[i] >= b.t.roles[i].count || !b.t.addable(b.candidates[at], b.counts[at], b.free[at], i) {
		return false
	}
	pos := b.candidates[at].pos
	for _, r := range b.crossNode.separations {
		d := b.crossNode.domain[r.key][pos]
		if d < 0 {
			continue
		}
		if r.a == i && b.membersIn(r.key, d, r.b) > 0 || r.b == i && b.membersIn(r.key, d, r.a) > 0 {
			return false
		}
	}
	return b.affinityAccepts(pos, i) && b.spreadAccepts(pos, i)
}

// membersIn is how many members of a role are in a domain of a key.
func (b *partialPlacement) membersIn(key, domain, i int) int {
	return b.members[key][domain*len(b.t.roles)+i]
}

// affinityAccepts reports whether the affinity of role i accepts a node.
func (b *partialPlacement) affinityAccepts(pos, i int) bool {
	r := b.crossNode.affinity[i]
	if r == nil {
		return true
	}
	all := true
	for j, key := range r.keys {
		d := b.crossNode.domain[key][pos]
		if d < 0 {
			return false
		}
		there := r.base[j][d]
		for other, match := range r.match {
			if match {
				there += b.membersIn(key, d, other)
			}
		}
		all = all && there > 0
	}
	// The first of a group may go anywhere, if it would be welcome to itself.
	return all || r.existing+b.matched[i] == 0 && r.match[i]
}

// spreadAccepts reports whether the spread constraints of role i accept a node.
func (b *partialPlacement) spreadAccepts(pos, i int) bool {
	for j, r := range b.crossNode.spread[i] {
		d := b.crossNode.domain[r.key][pos]
		if d < 0 {
			return false
		}
		n := b.spread[i][j][d]
		if r.self {
			n++
		}
		if b.least[i][j] < 0 {
			b.least[i][j] = r.least(b.spread[i][j])
		}
		if n-b.least[i][j] > r.skew {
			return false
		}
	}
	return true
}

// spreadCount is how many pods the spread constraints of role i count in the domains of a candidate: less is better.
func (b *partialPlacement) spreadCount(at, i int) int {
	sum := 0
	for j, r := range b.crossNode.spread[i] {
		sum += b.spread[i][j][b.crossNode.domain[r.key][b.candidates[at].pos]]
	}
	return sum
}

// move places a member of role i on a candidate; with sign -1 it takes one away.
func (b *partialPlacement) move(at, i, sign int) {
	pos := b.candidates[at].pos
	b.t.roles[i].take(b.free[at], int64(sign))
	b.counts[at][i] += sign
	b.used[at] += sign
	b.placed[i] += sign
	for key, domain := range b.crossNode.domain {
		if d := domain[pos]; d >= 0 {
			b.members[key][d*len(b.t.roles)+i] += sign
		}
	}
	for other, r := range b.crossNode.affinity {
		if r != nil && r.match[i] && (r.anywhere || slices.ContainsFunc(r.keys, func(key int) bool { return b.crossNode.domain[key][pos] >= 0 })) {
			b.matched[other] += sign
		}
	}
	for other, rules := range b.crossNode.spread {
		for j, r := range rules {
			if d := b.crossNode.domain[r.key][pos]; d >= 0 && r.match[i] && r.counted[pos] {
				b.spread[other][j][d] += sign
				b.least[other][j] = -1
			}
		}
	}
}

// packing is the placement as a packing.
func (b *partialPlacement) packing() packing {
	p := packing{placed: slices.Clone(b.placed)}
	for at, counts := range b.counts {
		if b.used[at] > 0 {
			p.candidates, p.counts = append(p.candidates, b.candidates[at]), append(p.counts, slices.Clone(counts))
		}
	}
	return p
}

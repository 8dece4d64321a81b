package placement

import (
	"encoding/binary"
	"slices"
)

// completion looks for a placement of the whole gang where a table of all sets of members would be too large, as it is for many members that are all
// different: node by node, each is filled with members to which no other can be added, the hardest to place first. A placement that leaves room for a member
// which is elsewhere is as good with that member there, so no placement is missed. Of nodes that are alike a later one has no more of the hardest members
// than the one before: to swap them would be the same. What is left over after some nodes, where that has no place on the others, is remembered.
type completion struct {
	t          *task
	candidates []*candidate
	order      []int // the roles, the hardest to place first
	left       combination
	counts     []combination // by candidate
	takes      []uint64      // by candidate: the roles, as bits, of which it takes members
	// What the candidates from one on have, by its position: how much of each resource, of no candidate more than all members request; the most that is free on
	// one; and how many slots there are for each role.
	free, largest, slots [][]int64
	requested            []int64 // by resource: what the members request that are left
	dead                 map[string]bool
	steps, most          int  // most is how many steps it may take
	cut                  bool // it has not tried everything
}

const (
	// maxDead is how many sets of members are remembered.
	maxDead = 1 << 17
	// mostSteps is how many steps are taken for one gang: mostly a placement is found in few, or not at all. fewSteps is how many are where enough members have a place
	// without, or another search follows.
	mostSteps = 1 << 18
	fewSteps  = 1 << 14
	// largeTable is how many states a table has that is only made where this search finds nothing.
	largeTable = 1 << 10
)

func newCompletion(t *task, candidates []*candidate, most int) *completion {
	n := len(candidates)
	x := &completion{
		t: t, candidates: candidates, order: t.bySize(candidates), left: make(combination, len(t.roles)), counts: make([]combination, n), takes: make([]uint64, n),
		free: make([][]int64, n+1), largest: make([][]int64, n+1), slots: make([][]int64, n+1), requested: t.mostRequested(), dead: map[string]bool{}, most: most,
	}
	for i := range t.roles {
		x.left[i] = t.roles[i].count
	}
	resources := len(t.c.names.list)
	width := 2*resources + len(t.roles)
	all := make([]int64, (n+1)*width)
	for at := n; at >= 0; at-- {
		row := all[at*width : (at+1)*width]
		x.free[at], x.largest[at], x.slots[at] = row[:resources], row[resources:2*resources], row[2*resources:]
		if at == n {
			continue
		}
		copy(row, all[(at+1)*width:])
		for pos, amount := range candidates[at].free {
			x.free[at][pos] += min(amount, x.requested[pos])
			x.largest[at][pos] = max(x.largest[at][pos], amount)
		}
		for i, slots := range candidates[at].slots {
			if x.slots[at][i] += int64(slots); slots > 0 {
				x.takes[at] |= 1 << i
			}
		}
	}
	return x
}

// solve returns a placement of the whole gang. Without one, found is false, and it is proven that there is none unless the search was cut.
func (x *completion) solve() (p packing, found bool) {
	if !x.place(0) {
		return packing{}, false
	}
	p.placed = make(combination, len(x.t.roles))
	for at, counts := range x.counts {
		if counts == nil || !slices.ContainsFunc(counts, func(n int) bool { return n > 0 }) {
			continue
		}
		p.candidates, p.counts = append(p.candidates, x.candidates[at]), append(p.counts, counts)
		for i, n := range counts {
			p.placed[i] += n
		}
	}
	return p, true
}

// place places the members that are left on the candidates from one on, and reports whether they have room there.
func (x *completion) place(at int) bool {
	var wanted uint64
	for i, n := range x.left {
		if n > 0 {
			wanted |= 1 << i
		}
	}
	if wanted == 0 {
		return true
	}
	for at < len(x.candidates) && x.takes[at]&wanted == 0 {
		at++
	}
	if at == len(x.candidates) || !x.couldFit(at) {
		return false
	}
	key := x.key(at)
	if x.dead[key] {
		return false
	}
	s := x.candidates[at]
	x.counts[at] = make(combination, len(x.t.roles))
	found := x.fill(at, 0, slices.Clone(s.free), at > 0 && x.counts[at-1] != nil && x.candidates[at-1].kind == s.kind)
	if !found {
		x.counts[at] = nil
		if !x.cut && len(x.dead) < maxDead {
			x.dead[key] = true
		}
	}
	return found
}

// fill decides for one role after the other how many members a candidate has, the most first, and goes on with the next candidate. bounded means that it has
// as many of the roles so far as the one before it, which is alike.
func (x *completion) fill(at, next int, free []int64, bounded bool) bool {
	if x.over() {
		return false
	}
	s, counts := x.candidates[at], x.counts[at]
	for ; next < len(x.order); next++ {
		i := x.order[next]
		if x.left[i] > 0 && s.slots[i] > 0 {
			break
		}
		bounded = bounded && x.counts[at-1][i] == 0
	}
	if next == len(x.order) {
		for _, i := range x.order {
			if x.left[i] > 0 && x.t.addable(s, counts, free, i) {
				return false // with that member it is tried as well
			}
		}
		return x.place(at + 1)
	}
	i := x.order[next]
	most := x.left[i]
	if bounded {
		most = min(most, x.counts[at-1][i])
	}
	for counts[i] < most && x.t.addable(s, counts, free, i) {
		x.move(at, i, 1, free)
	}
	for {
		if x.fill(at, next+1, free, bounded && counts[i] == x.counts[at-1][i]) {
			return true
		}
		if counts[i] == 0 || x.cut {
			break
		}
		x.move(at, i, -1, free)
	}
	for counts[i] > 0 {
		x.move(at, i, -1, free)
	}
	return false
}

// move places a member of role i on a candidate; with sign -1 it takes one away.
func (x *completion) move(at, i, sign int, free []int64) {
	x.counts[at][i] += sign
	x.left[i] -= sign
	k := &x.t.roles[i]
	k.take(free, int64(sign))
	k.take(x.requested, int64(sign))
}

// couldFit reports whether the candidates from one on have as much in all as the members that are left request, and are as many as those of which no two go
// together.
func (x *completion) couldFit(at int) bool {
	for pos, amount := range x.requested {
		if amount > x.free[at][pos] {
			return false
		}
		large := 0
		for i, n := range x.left {
			if 2*x.t.roles[i].rules.requests[pos] > x.largest[at][pos] {
				large += n
			}
		}
		if large > len(x.candidates)-at {
			return false
		}
	}
	for i, n := range x.left {
		if int64(n) > x.slots[at][i] {
			return false
		}
	}
	return true
}

// over reports whether the search is to end.
func (x *completion) over() bool {
	x.steps++
	x.cut = x.cut || x.steps > x.most || x.t.expired()
	return x.cut
}

// key names the members that are left after some candidates.
func (x *completion) key(at int) string {
	key := binary.AppendUvarint(make([]byte, 0, len(x.left)+4), uint64(at))
	for _, n := range x.left {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return string(key)
}

package placement

import "slices"

// board is a partial placement and what it means for the next member.
type board struct {
	t       *task
	f       *far
	sites   []*site
	free    [][]int64
	counts  []pattern // by site
	used    []int     // by site: members on it
	placed  pattern
	members [][]int   // by key, then domain and class: members there
	matched []int     // by class: placed members that its affinity counts as existing
	spread  [][][]int // by class, rule, domain: pods counted
	least   [][]int   // by class, rule: what the skew is measured from, -1 if it has to be computed
}

func newBoard(t *task, sites []*site) *board {
	b := &board{t: t, f: t.far, sites: sites, placed: make(pattern, len(t.classes)), matched: make([]int, len(t.classes))}
	for _, s := range sites {
		b.free = append(b.free, slices.Clone(s.free))
		b.counts = append(b.counts, make(pattern, len(t.classes)))
	}
	b.used = make([]int, len(sites))
	for _, n := range b.f.domains {
		b.members = append(b.members, make([]int, n*len(t.classes)))
	}
	b.spread, b.least = make([][][]int, len(t.classes)), make([][]int, len(t.classes))
	for i, rules := range b.f.spread {
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

// accepts tells whether a member of class i may be placed on a site next.
func (b *board) accepts(at, i int) bool {
	if b.placed[i] >= b.t.classes[i].count || !b.t.addable(b.sites[at], b.counts[at], b.free[at], i) {
		return false
	}
	pos := b.sites[at].pos
	for _, r := range b.f.apart {
		d := b.f.domain[r.key][pos]
		if d < 0 {
			continue
		}
		if r.a == i && b.in(r.key, d, r.b) > 0 || r.b == i && b.in(r.key, d, r.a) > 0 {
			return false
		}
	}
	return b.welcomes(pos, i) && b.even(pos, i)
}

func (b *board) in(key, domain, i int) int { return b.members[key][domain*len(b.t.classes)+i] }

// welcomes tells whether the affinity of class i accepts a node.
func (b *board) welcomes(pos, i int) bool {
	r := b.f.affinity[i]
	if r == nil {
		return true
	}
	all := true
	for j, key := range r.keys {
		d := b.f.domain[key][pos]
		if d < 0 {
			return false
		}
		there := r.base[j][d]
		for other, match := range r.match {
			if match {
				there += b.in(key, d, other)
			}
		}
		all = all && there > 0
	}
	// The first of a group may go anywhere, if it would be welcome to itself.
	return all || r.existing+b.matched[i] == 0 && r.match[i]
}

// even tells whether the spread constraints of class i accept a node.
func (b *board) even(pos, i int) bool {
	for j, r := range b.f.spread[i] {
		d := b.f.domain[r.key][pos]
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

// ahead is how many pods the spread constraints of class i count in the domains of a site: less is better.
func (b *board) ahead(at, i int) int {
	sum := 0
	for j, r := range b.f.spread[i] {
		sum += b.spread[i][j][b.f.domain[r.key][b.sites[at].pos]]
	}
	return sum
}

// put places a member of class i on a site; with sign -1 it takes one away.
func (b *board) put(at, i, sign int) {
	pos := b.sites[at].pos
	b.t.classes[i].take(b.free[at], int64(sign))
	b.counts[at][i] += sign
	b.used[at] += sign
	b.placed[i] += sign
	for key, domain := range b.f.domain {
		if d := domain[pos]; d >= 0 {
			b.members[key][d*len(b.t.classes)+i] += sign
		}
	}
	for other, r := range b.f.affinity {
		if r != nil && r.match[i] && (r.anywhere || slices.ContainsFunc(r.keys, func(key int) bool { return b.f.domain[key][pos] >= 0 })) {
			b.matched[other] += sign
		}
	}
	for other, rules := range b.f.spread {
		for j, r := range rules {
			if d := b.f.domain[r.key][pos]; d >= 0 && r.match[i] && r.counted[pos] {
				b.spread[other][j][d] += sign
				b.least[other][j] = -1
			}
		}
	}
}

// packing reads the placement off the board.
func (b *board) packing() packing {
	p := packing{placed: slices.Clone(b.placed)}
	for at, counts := range b.counts {
		if b.used[at] > 0 {
			p.sites, p.counts = append(p.sites, b.sites[at]), append(p.counts, slices.Clone(counts))
		}
	}
	return p
}

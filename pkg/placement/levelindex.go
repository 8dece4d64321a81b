package placement

import (
	"cmp"
	"iter"
	"slices"
)

// levelIndex is the candidates of a shape, counted by the domains that its gangs may share. So a plan looks at the domains, and at the nodes of those
// that it tries.
type levelIndex struct {
	levels []*topology
	counts [][]countedKinds // by level and domain
	at     []nodeCount      // by node
}

// countedKinds is the candidates of a domain, and the kinds that they are of.
type countedKinds struct {
	counted
	kinds map[*kind]int // how many of them
}

// nodeCount is what a node is counted with.
type nodeCount struct {
	slots []int
	room  int
}

func newLevelIndex(levels []level, nodes int) *levelIndex {
	x := &levelIndex{at: make([]nodeCount, nodes)}
	for _, l := range levels {
		x.levels = append(x.levels, l.domains)
		x.counts = append(x.counts, make([]countedKinds, len(l.domains.nodes)))
	}
	return x
}

// holds reports whether the domains of some levels are those that are counted.
func (x *levelIndex) holds(levels []level) bool {
	return slices.EqualFunc(x.levels, levels, func(of *topology, l level) bool { return of == l.domains })
}

// domainsAt are the domains of a node by level, -1 where it is in none; nil without an index.
func (x *levelIndex) domainsAt(at int) (domains []int) {
	if x == nil {
		return nil
	}
	for _, of := range x.levels {
		domains = append(domains, of.domain[at])
	}
	return domains
}

// add counts a node that is a candidate of a kind.
func (x *levelIndex) add(at int, k *kind, slots []int, room int) {
	if x != nil {
		x.at[at] = nodeCount{slots, room}
		x.count(at, k, 1)
	}
}

// remove takes a node away from what is counted.
func (x *levelIndex) remove(at int, k *kind) {
	if x != nil {
		x.count(at, k, -1)
		x.at[at] = nodeCount{}
	}
}

func (x *levelIndex) count(at int, k *kind, n int) {
	for l, number := range k.domains {
		if number < 0 {
			continue
		}
		d := &x.counts[l][number]
		d.count(x.at[at].slots, x.at[at].room, n)
		if d.kinds == nil {
			d.kinds = map[*kind]int{}
		}
		if d.kinds[k] += n; d.kinds[k] == 0 {
			delete(d.kinds, k)
		}
	}
}

// indexed is the candidates of a shape, as a task finds them.
type indexed struct {
	s *shape
	t *task
	// special are the nodes that are like no others; nil where such a node is no candidate.
	special map[int]*candidate
}

func newIndexed(s *shape, t *task, special map[int]bool) *indexed {
	x := &indexed{s: s, t: t, special: make(map[int]*candidate, len(special))}
	for at := range special {
		x.special[at] = t.candidate(at, t.c.nodes[at])
	}
	return x
}

// level is the position of a topology among those of the index.
func (x *indexed) level(of *topology) int { return slices.Index(x.s.levels.levels, of) }

// domains implements ground.
func (x *indexed) domains(of *topology) []domain {
	changed := map[int]*counted{} // by domain, those with special nodes
	level := x.level(of)
	for at, now := range x.special {
		number := of.domain[at]
		if number < 0 {
			continue
		}
		c, known := changed[number]
		if !known {
			all := x.s.levels.counts[level][number].counted
			all.slots = slices.Clone(all.slots)
			c = &all
			changed[number] = c
		}
		if before := x.s.levels.at[at]; before.slots != nil {
			c.count(before.slots, before.room, -1)
		}
		if now != nil {
			c.count(now.slots, x.t.roomOn(now), 1)
		}
	}
	all := make([]domain, 0, len(of.nodes))
	for number := range of.nodes {
		c, special := changed[number]
		if !special {
			c = &x.s.levels.counts[level][number].counted
		}
		if c.candidates > 0 {
			all = append(all, domain{number: number, counted: *c})
		}
	}
	return all
}

// candidates implements ground.
func (x *indexed) candidates(of *topology, in []domain) []*candidate {
	chosen := make(map[int]bool, len(in))
	for _, d := range in {
		chosen[d.number] = true
	}
	return x.s.candidates(x.t, x.kinds(of, in), x.specialIn(of, chosen), x.isSpecial)
}

// kinds are those of the candidates of some domains.
func (x *indexed) kinds(of *topology, in []domain) iter.Seq[*kind] {
	counts := x.s.levels.counts[x.level(of)]
	return func(yield func(*kind) bool) {
		for _, d := range in {
			for k := range counts[d.number].kinds {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// specialIn are the special nodes in some domains.
func (x *indexed) specialIn(of *topology, chosen map[int]bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := range x.special {
			if chosen[of.domain[at]] && !yield(at) {
				return
			}
		}
	}
}

func (x *indexed) isSpecial(at int) bool {
	_, is := x.special[at]
	return is
}

// byFirst implements ground.
func (x *indexed) byFirst(of *topology, domains []domain) {
	first := make(map[int]ranked, len(domains))
	sooner := func(number int, p ranked) {
		if known, ok := first[number]; !ok || p.before(known) {
			first[number] = p
		}
	}
	for _, d := range domains {
		for k := range x.kinds(of, []domain{d}) {
			k.nodes.Ascend(func(p ranked) bool {
				if x.isSpecial(p.pos) {
					return true
				}
				sooner(d.number, p)
				return false
			})
		}
	}
	for at, c := range x.special {
		if c != nil && of.domain[at] >= 0 {
			sooner(of.domain[at], ranked{rank: x.t.rankOf(c), pos: at})
		}
	}
	slices.SortFunc(domains, func(a, b domain) int {
		p, q := first[a.number], first[b.number]
		return cmp.Or(p.compare(q.rank), cmp.Compare(p.pos, q.pos))
	})
}

// proves implements ground: it leaves out candidates that are no better than others.
func (*indexed) proves() bool { return false }

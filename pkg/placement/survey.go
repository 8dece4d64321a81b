package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// site is a node that takes at least one member of some class.
type site struct {
	n     *node
	pos   int     // position of the node in the cluster
	ok    []bool  // by class: the node takes a member, amounts and other members aside
	slots []int   // by class: how many members fit alone; at most the class's count
	free  []int64 // by resource, what members can use
	clash []uint64
	kind  int   // sites of the same kind take the same members
	liked int64 // by how much the site is preferred
}

// survey finds the sites.
func (t *task) survey() {
	width := len(t.c.names.list)
	for pos, n := range t.c.nodes {
		if t.opts.Node != nil && !t.opts.Node(n.obj) {
			continue
		}
		var s *site
		for i := range t.classes {
			k := &t.classes[i]
			slots := k.alone(n)
			if slots == 0 || !k.rules.admits(n) {
				continue
			}
			if s == nil {
				s = &site{n: n, pos: pos, ok: make([]bool, len(t.classes)), slots: make([]int, len(t.classes))}
			}
			s.ok[i], s.slots[i] = true, slots
		}
		if s != nil {
			s.free = make([]int64, width)
			for i := range s.free {
				s.free[i] = max(0, n.alloc.at(i)-n.used.at(i))
			}
			t.clash(s)
			t.deviceSlots(s)
			t.sites = append(t.sites, s)
		}
	}
}

// alone returns how many members fit on a node by amounts, at most count.
func (k *class) alone(n *node) int {
	if len(k.rules.absent) > 0 {
		return 0
	}
	slots := int64(k.count)
	for _, need := range k.needs {
		slots = min(slots, (n.alloc.at(need.pos)-n.used.at(need.pos))/need.amount)
	}
	return int(max(slots, 0))
}

// sort brings sites into the order in which they are filled: those preferred, those on which no class wastes devices, then the
// ones with the most slots, so that few nodes are used; then the fuller ones, if asked for; names last.
func (t *task) sort(sites []*site) {
	type rank struct {
		waste, slots int
		full         float64
	}
	ranks := make(map[*site]rank, len(sites))
	for _, s := range sites {
		var r rank
		for i, n := range s.slots {
			r.slots += n
			if n > 0 && t.wastes(i, s) {
				r.waste = 1
			}
		}
		if t.opts.Pack {
			r.full = t.fullness(s)
		}
		if t.opts.Prefer != nil {
			s.liked = t.opts.Prefer(s.n.obj)
		}
		ranks[s] = r
	}
	slices.SortFunc(sites, func(a, b *site) int {
		x, y := ranks[a], ranks[b]
		return cmp.Or(cmp.Compare(b.liked, a.liked), cmp.Compare(x.waste, y.waste), cmp.Compare(y.slots, x.slots),
			cmp.Compare(y.full, x.full), cmp.Compare(a.pos, b.pos))
	})
}

// classify gives sites that take the same members the same kind. Amounts beyond what the whole gang asks for do not matter.
func (t *task) classify(sites []*site) {
	limit := make([]int64, len(t.c.names.list))
	for i := range t.classes {
		for _, need := range t.classes[i].needs {
			limit[need.pos] += need.amount * int64(t.classes[i].count)
		}
	}
	kinds := map[string]int{}
	var key []byte
	for _, s := range sites {
		key = key[:0]
		for i := range t.classes {
			key = binary.AppendUvarint(key, uint64(s.slots[i]))
			key = binary.AppendUvarint(key, s.clashes(i))
		}
		for pos, most := range limit {
			if most > 0 {
				key = binary.AppendUvarint(key, uint64(min(s.free[pos], most)))
			}
		}
		key = t.devices(s, key)
		kind, ok := kinds[string(key)]
		if !ok {
			kind = len(kinds)
			kinds[string(key)] = kind
		}
		s.kind = kind
	}
}

func (s *site) clashes(i int) uint64 {
	if s.clash == nil {
		return 0
	}
	return s.clash[i]
}

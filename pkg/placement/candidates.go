package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// candidate is a node that takes at least one member of some role.
type candidate struct {
	n          *node
	pos        int         // position of the node in the cluster
	ok         []bool      // by role: the node takes a member, amounts and other members aside
	slots      []int       // by role: how many members fit alone; at most the role's count
	free       []int64     // by resource, what members can use
	attach     *attachRoom // the volumes that it can attach; nil where their number does not matter
	conflicts  []uint64    // by role: the roles that it does not take together with it, as bits; nil without any
	kind       int         // candidates of the same kind take the same members
	preference int64       // by how much the candidate is preferred
}

// clockEvery is after how many nodes the clock is looked at.
const clockEvery = 8

// findCandidates evaluates every node on its own.
func (t *task) findCandidates() {
	t.countSpread()
	looked := 0
	for pos, n := range t.c.nodes {
		if t.opts.Node != nil && !t.opts.Node(n.obj) {
			continue
		}
		// A node may take long: a tenant writes what is looked at. Most take less than a look at the clock.
		if t.undecided() || t.overBudget || (looked%clockEvery == 0 || t.devices != nil) && t.overdue() {
			return
		}
		looked++
		if s := t.candidate(pos, n); s != nil {
			t.candidates = append(t.candidates, s)
		}
	}
}

// candidate evaluates a node on its own; nil if it takes no member.
func (t *task) candidate(pos int, n *node) *candidate {
	var s *candidate
	for i := range t.roles {
		k := &t.roles[i]
		slots := k.alone(n)
		if slots == 0 || !k.rules.admits(n) {
			continue
		}
		if s == nil {
			s = &candidate{n: n, pos: pos, ok: make([]bool, len(t.roles)), slots: make([]int, len(t.roles))}
		}
		s.ok[i], s.slots[i] = true, slots
	}
	if s == nil {
		return nil
	}
	s.free = make([]int64, len(t.c.names.list))
	for i := range s.free {
		s.free[i] = max(0, n.alloc.at(i)-n.used.at(i))
	}
	t.findConflicts(s)
	t.attach.limit(t, s)
	t.devices.limit(s)
	return s
}

// assignKinds gives candidates that take the same members the same kind.
func (t *task) assignKinds(candidates []*candidate) {
	most := t.mostRequested()
	kinds := map[string]int{}
	var key []byte
	for _, s := range candidates {
		key = t.kindKey(key[:0], s, most)
		if t.devices != nil { // devices are allocated one by one, so that no two candidates are known to be alike
			key = append(key, s.n.obj.Name...)
		}
		kind, ok := kinds[string(key)]
		if !ok {
			kind = len(kinds)
			kinds[string(key)] = kind
		}
		s.kind = kind
	}
}

// mostRequested is the requests of the whole gang, by resource.
func (t *task) mostRequested() []int64 {
	most := make([]int64, len(t.c.names.list))
	for i := range t.roles {
		for _, c := range t.roles[i].charges {
			most[c.pos] += c.amount * int64(t.roles[i].count)
		}
	}
	return most
}

// kindKey appends to key what is the same for candidates that take the same members. Amounts beyond the most that is requested do not
// matter.
func (t *task) kindKey(key []byte, s *candidate, most []int64) []byte {
	for i := range t.roles {
		key = binary.AppendUvarint(key, uint64(s.slots[i]))
		key = binary.AppendUvarint(key, s.conflictsWith(i))
	}
	for pos, most := range most {
		if most > 0 {
			key = binary.AppendUvarint(key, uint64(min(s.free[pos], most)))
		}
	}
	return t.attach.kindKey(key, s)
}

// order makes candidates ready to be filled.
func (t *task) order(candidates []*candidate) {
	if len(t.roles) > 1 || t.crossNode != nil || len(t.sharedVolumes) > 0 {
		t.assignKinds(candidates)
	}
	t.rank(candidates)
}

// rank brings candidates into the order in which they are filled: those preferred, those without taints that members rather avoid, those on which no
// role wastes devices, then the ones with the most slots, so that few nodes are used; then the fuller ones, if the options prefer them; names last.
func (t *task) rank(candidates []*candidate) {
	ranks := make(map[*candidate]rank, len(candidates))
	for _, s := range candidates {
		if t.opts.Prefer != nil {
			s.preference = t.opts.Prefer(s.n.obj)
		}
		ranks[s] = t.rankOf(s)
	}
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.preference, a.preference), ranks[a].compare(ranks[b]), cmp.Compare(a.pos, b.pos))
	})
}

// rank is the position of a candidate in the order, preferences and names aside.
type rank struct {
	avoided, waste, slots int
	full                  float64
}

func (t *task) rankOf(s *candidate) rank {
	var r rank
	for i, n := range s.slots {
		r.slots += n
		if n == 0 {
			continue
		}
		r.avoided += t.roles[i].rules.avoids(s.n.obj)
		if t.wastes(i, s) {
			r.waste = 1
		}
	}
	if t.opts.Pack {
		r.full = t.fullness(s)
	}
	return r
}

// compare is negative if candidates of this rank are filled before those of the other.
func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.avoided, other.avoided), cmp.Compare(r.waste, other.waste), cmp.Compare(other.slots, r.slots), cmp.Compare(other.full, r.full))
}

// fullness is how much of a node is in use, from 0 to 1, in the devices that the gang requests; in cpu if it requests none.
func (t *task) fullness(s *candidate) float64 {
	var sum float64
	kinds := 0
	share := func(pos int) {
		if total := s.n.alloc.at(pos); total > 0 {
			sum += float64(s.n.used.at(pos)) / float64(total)
			kinds++
		}
	}
	for pos := posScalars; pos < len(s.free); pos++ {
		for i := range t.roles {
			if t.roles[i].rules.requests[pos] > 0 {
				share(pos)
				break
			}
		}
	}
	if kinds == 0 {
		share(posCPU)
	}
	if kinds == 0 {
		return 0
	}
	return sum / float64(kinds)
}

// wastes reports whether a candidate has free devices that a role does not request.
func (t *task) wastes(i int, s *candidate) bool {
	requests := t.roles[i].rules.requests
	for pos := posScalars; pos < len(s.free); pos++ {
		if s.free[pos] > 0 && requests[pos] == 0 {
			return true
		}
	}
	return false
}

// bySize orders the roles by how few of them fit on a candidate at most, large members first.
func (t *task) bySize(candidates []*candidate) []int {
	most := make([]int, len(t.roles))
	roles := make([]int, len(t.roles))
	for i := range t.roles {
		roles[i] = i
		for _, s := range candidates {
			most[i] = max(most[i], s.slots[i])
		}
	}
	slices.SortStableFunc(roles, func(a, b int) int { return most[a] - most[b] })
	return roles
}

// without is the candidate for the other roles only.
func (s *candidate) without(roles []bool) *candidate {
	other := *s
	other.ok, other.slots = slices.Clone(s.ok), slices.Clone(s.slots)
	for i, off := range roles {
		if off {
			other.ok[i], other.slots[i] = false, 0
		}
	}
	return &other
}

// masked are the candidates for other roles than those that off names for each; those that are left with none are left out.
func (t *task) masked(candidates []*candidate, off func(s *candidate, roles []bool)) []*candidate {
	out := make([]*candidate, 0, len(candidates))
	roles := make([]bool, len(t.roles))
	for _, s := range candidates {
		clear(roles)
		if off(s, roles); !slices.Contains(roles, false) {
			continue
		}
		if slices.Contains(roles, true) {
			s = s.without(roles)
		}
		if slices.ContainsFunc(s.slots, func(n int) bool { return n > 0 }) {
			out = append(out, s)
		}
	}
	t.assignKinds(out)
	return out
}

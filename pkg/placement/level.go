package placement

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A gang may have to share a domain of a topology key, and prefer narrower ones. Each key is a level, and the levels are tried from the narrowest
// outward: the candidates are counted once by the domains of all levels, and only domains that have enough by that count are searched.

// level is one way in which the members of a gang share a domain.
type level struct {
	// key is the label of which members share the value; empty where they may be anywhere.
	key string
	// domains are those of the key within the wider levels.
	domains *topology
	// wider are the domains of the wider levels, from the next one on.
	wider []*topology
	// narrower are the domains of the next narrower level, none of which has room for the gang; nil on the narrowest.
	narrower *topology
	// last is set on the widest level: with no placement there, there is none. If it has a key, members must share its domain.
	last bool
}

// domain is the candidates of one domain of a level.
type domain struct {
	number     int
	candidates []*candidate
	slots      []int // by role
	free       int   // the sum of slots
	room       int   // of its candidates
	preference int64 // of the nodes that the gang would fill, summed over its members
}

// name is what users call the domain: its value of the level's key.
func (d domain) name(key string) string { return d.candidates[0].n.obj.Labels[key] }

// levels are those of a gang, the narrowest first.
func (t *task) levels(g Gang) []level {
	var keys []string
	for _, key := range g.Topology.Preferred {
		if key != g.Topology.Required && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	all := []level{{last: true}}
	if required := g.Topology.Required; required != "" {
		all, keys = nil, append(keys, required)
	}
	var wider []*topology
	for i := len(keys) - 1; i >= 0; i-- {
		l := level{key: keys[i], domains: t.c.topology(keys[i:]...), wider: wider, last: len(all) == 0}
		all, wider = append(all, l), append([]*topology{l.domains}, wider...)
	}
	slices.Reverse(all)
	for i := 1; i < len(all); i++ {
		all[i].narrower = all[i-1].domains
	}
	return all
}

// within are the domains of the key that the gang must share; nil without.
func (t *task) within(g Gang) *topology {
	if g.Topology.Required == "" {
		return nil
	}
	return t.c.topology(g.Topology.Required)
}

// solve solves the gang on the cluster. If its members share a domain, it is the best one of the narrowest level that takes all of them, or else
// of the narrowest that takes enough.
func (t *task) solve(g Gang) solution {
	if g.Topology.Empty() || t.opts.Ignore.Has(Topology) {
		return t.solveAffinityGroup(t.candidates)
	}
	t.measureRoom()
	var enough *solution
	for _, l := range t.levels(g) {
		a := t.solveLevel(g, l)
		switch {
		case a.proof == Witness && t.full(a.packing.placed):
			return a
		case a.proof == Witness && enough == nil:
			enough = &a
		case l.last && enough == nil:
			return a
		}
	}
	return *enough
}

// solveLevel solves the gang on the best domain of a level. On a level that is preferred, domains without room by the count are not searched:
// nothing is to be proven about them.
func (t *task) solveLevel(g Gang, l level) solution {
	if l.key == "" {
		return t.solveInFew(g, l.narrower, t.candidates)
	}
	domains, ok := t.domainsOf(g, l)
	if !ok { // the members that have a node are in two domains already
		return solution{packing: t.emptyPacking(), proof: Exhausted}
	}
	if !l.last {
		domains = slices.DeleteFunc(domains, func(d domain) bool { return !t.couldTake(d) })
	}
	return bestOf(t, domains, func(d domain) solution {
		a := t.solveInFew(g, l.narrower, d.candidates)
		a.domain, a.level = d.name(l.key), l.key
		if a.bound != nil {
			a.bound.Domain = a.domain
		}
		return a
	})
}

// solveInFew solves the gang on candidates that are in several domains of a narrower level, which the gang prefers: if that is possible, on as few of
// those as have enough room by the count.
func (t *task) solveInFew(g Gang, narrower *topology, candidates []*candidate) solution {
	if narrower != nil {
		if few := t.few(g, narrower, candidates); len(few) < len(candidates) {
			if a := t.solveAffinityGroup(few); a.proof == Witness && t.full(a.packing.placed) {
				return a
			}
		}
	}
	return t.solveAffinityGroup(candidates)
}

// few returns the candidates of as few domains as have room for all members by the count: those where members have a node, then the largest, and the
// last of them as small as will do. All candidates are returned if there is no room for all.
func (t *task) few(g Gang, of *topology, candidates []*candidate) []*candidate {
	domains := t.split(of, candidates, func(s *candidate) bool { return of.domain[s.pos] >= 0 })
	here := make([]int, len(of.nodes)) // by domain: 1 if members have a node there
	for _, uid := range g.Bound {
		if at, ok := t.c.position(uid); ok && of.domain[at] >= 0 {
			here[of.domain[at]] = 1
		}
	}
	slices.SortStableFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(here[b.number], here[a.number]), cmp.Compare(b.free, a.free))
	})
	chosen := make([]bool, len(of.nodes))
	room := make([]int, len(t.roles))
	for i, d := range domains {
		next := d
		for _, smaller := range domains[i+1:] {
			if here[d.number] == 0 && smaller.free < next.free && t.takesAll(room, smaller.slots) {
				next = smaller
			}
		}
		chosen[next.number] = true
		if t.takesAll(room, next.slots) {
			return slices.DeleteFunc(slices.Clone(candidates), func(s *candidate) bool { return of.domain[s.pos] < 0 || !chosen[of.domain[s.pos]] })
		}
		for role, n := range next.slots {
			room[role] = add(room[role], n)
		}
	}
	return candidates
}

// takesAll reports whether all members fit by the count into two amounts of slots.
func (t *task) takesAll(room, more []int) bool {
	for i, n := range more {
		if add(room[i], n) < t.roles[i].count {
			return false
		}
	}
	return true
}

// couldTake reports whether a domain has enough slots for the gang, each role and each node looked at alone.
func (t *task) couldTake(d domain) bool {
	sum := 0
	for i, n := range d.slots {
		if n < t.roles[i].min {
			return false
		}
		sum += min(n, t.roles[i].count)
	}
	return sum >= t.required
}

// domainsOf counts the candidates by the domains of a level, and returns the domains in the order in which the gang is tried on them. With members
// that have a node it is their domain alone; ok is false if they share none.
func (t *task) domainsOf(g Gang, l level) (domains []domain, ok bool) {
	only, fixed := t.boundDomain(g, l.domains)
	if only < 0 && fixed {
		return nil, false
	}
	within := t.within(g)
	domains = t.split(l.domains, t.candidates, func(s *candidate) bool {
		number := l.domains.domain[s.pos]
		return number >= 0 && (!fixed || number == only) && (within == nil || within.domain[s.pos] >= 0)
	})
	if t.opts.Prefer != nil {
		for i := range domains {
			domains[i].preference = t.preferenceOf(domains[i])
		}
	}
	t.rankDomains(l, domains)
	return domains, true
}

// split counts those candidates that are accepted by domain.
func (t *task) split(of *topology, candidates []*candidate, accept func(*candidate) bool) (domains []domain) {
	at := make([]int, len(of.nodes)) // by domain: its position in domains, from 1
	for _, s := range candidates {
		if !accept(s) {
			continue
		}
		number := of.domain[s.pos]
		if at[number] == 0 {
			domains = append(domains, domain{number: number, slots: make([]int, len(t.roles))})
			at[number] = len(domains)
		}
		d := &domains[at[number]-1]
		d.candidates, d.room = append(d.candidates, s), add(d.room, s.room)
		for i, n := range s.slots {
			d.slots[i] = add(d.slots[i], n)
			d.free = add(d.free, n)
		}
	}
	return domains
}

// preferenceOf sums the preference of nodes over as many members as the gang needs, each node taking as many as fit of the role of which most do.
func (t *task) preferenceOf(d domain) (sum int64) {
	left := t.required
	for _, s := range d.candidates { // those preferred come first
		n := min(left, slices.Max(s.slots))
		sum += int64(n) * s.preference
		if left -= n; left == 0 {
			break
		}
	}
	return sum
}

// measureRoom gives every candidate its room, by which domains are ranked. Only gangs with levels have a use for it: the candidates of others are
// evaluated more often than anything else. What a candidate leaves to some roles ([candidate.without]) is a copy with the room of the whole.
func (t *task) measureRoom() {
	for _, s := range t.candidates {
		s.room = 0
		for i, slots := range s.slots {
			if slots == t.roles[i].count {
				slots = t.roles[i].room(s.n)
			}
			s.room = add(s.room, slots)
		}
	}
}

// add does not wrap: a slot is worth nothing to nodes on which the resources of a role do not count.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// rankDomains brings domains into the order in which the gang is tried on them: those with preferred nodes, then the one with the least room, so that
// the gang goes where it leaves the least behind. Of several with as much room it is the one in the wider domain with the least room, so that
// the largest one elsewhere stays whole; then the one with the most nodes, which is the fullest; names last.
func (t *task) rankDomains(l level, domains []domain) {
	slices.SortFunc(domains, func(a, b domain) int {
		first, second := a.candidates[0], b.candidates[0]
		order := cmp.Or(cmp.Compare(b.preference, a.preference), cmp.Compare(a.room, b.room))
		for i := 0; i < len(l.wider) && order == 0; i++ {
			order = cmp.Compare(t.roomAround(l.wider[i], first), t.roomAround(l.wider[i], second))
		}
		return cmp.Or(order, cmp.Compare(l.domains.nodes[b.number], l.domains.nodes[a.number]),
			strings.Compare(a.name(l.key), b.name(l.key)), cmp.Compare(a.number, b.number))
	})
}

// roomAround is how much room there is in the domain that a candidate is in; 0 if it is in none.
func (t *task) roomAround(of *topology, s *candidate) int {
	room, known := t.rooms[of]
	if !known {
		room = make([]int, len(of.nodes))
		for _, other := range t.candidates {
			if d := of.domain[other.pos]; d >= 0 {
				room[d] = add(room[d], other.room)
			}
		}
		if t.rooms == nil {
			t.rooms = map[*topology][]int{}
		}
		t.rooms[of] = room
	}
	if d := of.domain[s.pos]; d >= 0 {
		return room[d]
	}
	return 0
}

// boundDomain returns the domain of the members that have a node; fixed is false without such members. The domain is -1 if they share none.
func (t *task) boundDomain(g Gang, of *topology) (number int, fixed bool) {
	for _, uid := range g.Bound {
		at, ok := t.c.position(uid)
		if !ok {
			continue
		}
		if d := of.domain[at]; !fixed {
			number, fixed = d, true
		} else if d != number {
			return -1, true
		}
	}
	return number, fixed
}

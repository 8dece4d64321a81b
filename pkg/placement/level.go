package placement

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/gang/networktopology"
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

// name is the domain's value of the level's key, by which users know it.
func (d domain) name(key string) string { return d.candidates[0].n.obj.Labels[key] }

// solve solves the gang on the cluster.
func (t *task) solve(g Gang) solution {
	if !g.Topology.OfAll() || t.opts.Ignore.Has(Topology) {
		return t.solveParts(t.candidates)
	}
	return newLevelSearch(t, g).solve()
}

// levelSearch is the search for a domain that the members of a gang share.
type levelSearch struct {
	*task
	gang  Gang
	rooms map[*topology][]int // by topology, then domain: the room of the candidates
}

// newLevelSearch gives every candidate its room, by which domains are ranked. Gangs without levels have no use for it, and their candidates are
// evaluated more often than anything else. What a candidate leaves to some roles ([candidate.without]) is a copy with the room of the whole.
func newLevelSearch(t *task, g Gang) *levelSearch {
	for _, s := range t.candidates {
		s.room = 0
		for i, slots := range s.slots {
			if slots == t.roles[i].count {
				slots = t.roles[i].room(s.n)
			}
			s.room = add(s.room, slots)
		}
	}
	return &levelSearch{task: t, gang: g, rooms: map[*topology][]int{}}
}

// solve solves the gang on the best domain of the narrowest level that takes all members, or else of the narrowest that takes enough.
func (x *levelSearch) solve() solution {
	var enough *solution
	for _, l := range x.levels() {
		a := x.solveLevel(l)
		switch {
		case a.proof == Witness && x.full(a.packing.placed):
			return a
		case a.proof == Witness && enough == nil:
			enough = &a
		case l.last && enough == nil:
			return a
		}
	}
	return *enough
}

// levels are those of a gang, the narrowest first.
func (x *levelSearch) levels() []level {
	keys := x.narrowestFirst()
	all := []level{{last: true}}
	if required := x.gang.Topology.Required; required != "" {
		all, keys = nil, append(keys, required)
	}
	var wider []*topology
	for i := len(keys) - 1; i >= 0; i-- {
		of := x.c.topology(keys[i:]...)
		if n := len(all); len(wider) > 0 && of.equal(wider[0]) { // another name of the same domains, as of tiers without HyperNodes
			all[n-1].key, all[n-1].domains, wider[0] = keys[i], of, of
			continue
		}
		l := level{key: keys[i], domains: of, wider: wider, last: len(all) == 0}
		all, wider = append(all, l), append([]*topology{l.domains}, wider...)
	}
	slices.Reverse(all)
	for i := 1; i < len(all); i++ {
		all[i].narrower = all[i-1].domains
	}
	return all
}

// narrowestFirst are the keys that the gang prefers. Layers of a network are listed in any order: those with the most domains come first.
func (x *levelSearch) narrowestFirst() (keys []string) {
	for _, key := range x.gang.Topology.Preferred {
		if key != x.gang.Topology.Required && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if !slices.ContainsFunc(keys, layered) {
		return keys
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(len(x.c.topology(b).nodes), len(x.c.topology(a).nodes)) })
	return keys
}

func layered(key string) bool {
	_, ok := networktopology.Layer(key)
	return ok
}

// within are the domains of the key that the gang must share; nil without.
func (x *levelSearch) within() *topology {
	if x.gang.Topology.Required == "" {
		return nil
	}
	return x.c.topology(x.gang.Topology.Required)
}

// solveLevel solves the gang on the best domain of a level. On a level that is preferred, domains without room by the count are not searched:
// nothing is to be proven about them.
func (x *levelSearch) solveLevel(l level) solution {
	if l.key == "" {
		return x.solveInFew(l.narrower, x.candidates)
	}
	domains, ok := x.domainsOf(l)
	if !ok { // the members that have a node are in two domains already
		return solution{packing: x.emptyPacking(), proof: Exhausted}
	}
	if !l.last {
		domains = slices.DeleteFunc(domains, func(d domain) bool { return !x.couldTake(d) })
	}
	return bestOf(x.task, domains, func(d domain) solution {
		a := x.solveInFew(l.narrower, d.candidates)
		a.domain, a.level = d.name(l.key), l.key
		if a.bound != nil {
			a.bound.Domain = a.domain
		}
		return a
	})
}

// solveInFew solves the gang on candidates that are in several domains of a narrower level, which the gang prefers: if that is possible, on as few of
// those as have enough room by the count.
func (x *levelSearch) solveInFew(narrower *topology, candidates []*candidate) solution {
	if narrower != nil {
		if few := x.few(narrower, candidates); len(few) < len(candidates) {
			if a := x.solveParts(few); a.proof == Witness && x.full(a.packing.placed) {
				return a
			}
		}
	}
	return x.solveParts(candidates)
}

// few returns the candidates of as few domains as have room for all members by the count: those where members have a node, then the largest, and the
// last of them as small as will do. All candidates are returned if there is no room for all.
func (x *levelSearch) few(of *topology, candidates []*candidate) []*candidate {
	domains := x.split(of, candidates, func(s *candidate) bool { return of.domain[s.pos] >= 0 })
	here := make([]int, len(of.nodes)) // by domain: 1 if members have a node there
	for _, uid := range x.gang.Bound {
		if at, ok := x.c.position(uid); ok && of.domain[at] >= 0 {
			here[of.domain[at]] = 1
		}
	}
	slices.SortStableFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(here[b.number], here[a.number]), cmp.Compare(b.free, a.free))
	})
	chosen := make([]bool, len(of.nodes))
	room := make([]int, len(x.roles))
	for i, d := range domains {
		next := d
		for _, smaller := range domains[i+1:] {
			if here[d.number] == 0 && smaller.free < next.free && x.takesAll(room, smaller.slots) {
				next = smaller
			}
		}
		chosen[next.number] = true
		if x.takesAll(room, next.slots) {
			return slices.DeleteFunc(slices.Clone(candidates), func(s *candidate) bool { return of.domain[s.pos] < 0 || !chosen[of.domain[s.pos]] })
		}
		for role, n := range next.slots {
			room[role] = add(room[role], n)
		}
	}
	return candidates
}

// takesAll reports whether all members fit by the count into two amounts of slots.
func (x *levelSearch) takesAll(room, more []int) bool {
	for i, n := range more {
		if add(room[i], n) < x.roles[i].count {
			return false
		}
	}
	return true
}

// couldTake reports whether a domain has enough slots for the gang, each role and each node looked at alone.
func (x *levelSearch) couldTake(d domain) bool {
	sum := 0
	for i, n := range d.slots {
		if n < x.roles[i].min {
			return false
		}
		sum += min(n, x.roles[i].count)
	}
	return sum >= x.required
}

// domainsOf counts the candidates by the domains of a level, and returns the domains in the order in which the gang is tried on them. With members
// that have a node it is their domain alone; ok is false if they share none.
func (x *levelSearch) domainsOf(l level) (domains []domain, ok bool) {
	only, fixed := x.boundDomain(l.domains)
	if only < 0 && fixed {
		return nil, false
	}
	within := x.within()
	domains = x.split(l.domains, x.candidates, func(s *candidate) bool {
		number := l.domains.domain[s.pos]
		return number >= 0 && (!fixed || number == only) && (within == nil || within.domain[s.pos] >= 0)
	})
	if x.opts.Prefer != nil {
		for i := range domains {
			domains[i].preference = x.preferenceOf(domains[i])
		}
	}
	x.rankDomains(l, domains)
	return domains, true
}

// split counts those candidates that are accepted by domain.
func (x *levelSearch) split(of *topology, candidates []*candidate, accept func(*candidate) bool) (domains []domain) {
	at := make([]int, len(of.nodes)) // by domain: its position in domains, from 1
	for _, s := range candidates {
		if !accept(s) {
			continue
		}
		number := of.domain[s.pos]
		if at[number] == 0 {
			domains = append(domains, domain{number: number, slots: make([]int, len(x.roles))})
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
func (x *levelSearch) preferenceOf(d domain) (sum int64) {
	left := x.required
	for _, s := range d.candidates { // those preferred come first
		n := min(left, slices.Max(s.slots))
		sum += int64(n) * s.preference
		if left -= n; left == 0 {
			break
		}
	}
	return sum
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
func (x *levelSearch) rankDomains(l level, domains []domain) {
	slices.SortFunc(domains, func(a, b domain) int {
		first, second := a.candidates[0], b.candidates[0]
		order := cmp.Or(cmp.Compare(b.preference, a.preference), cmp.Compare(a.room, b.room))
		for i := 0; i < len(l.wider) && order == 0; i++ {
			order = cmp.Compare(x.roomAround(l.wider[i], first), x.roomAround(l.wider[i], second))
		}
		return cmp.Or(order, cmp.Compare(l.domains.nodes[b.number], l.domains.nodes[a.number]),
			strings.Compare(a.name(l.key), b.name(l.key)), cmp.Compare(a.number, b.number))
	})
}

// roomAround is how much room there is in the domain that a candidate is in; 0 if it is in none.
func (x *levelSearch) roomAround(of *topology, s *candidate) int {
	room, known := x.rooms[of]
	if !known {
		room = make([]int, len(of.nodes))
		for _, other := range x.candidates {
			if d := of.domain[other.pos]; d >= 0 {
				room[d] = add(room[d], other.room)
			}
		}
		x.rooms[of] = room
	}
	if d := of.domain[s.pos]; d >= 0 {
		return room[d]
	}
	return 0
}

// boundDomain returns the domain of the members that have a node; fixed is false without such members. The domain is -1 if they share none.
func (x *levelSearch) boundDomain(of *topology) (number int, fixed bool) {
	for _, uid := range x.gang.Bound {
		at, ok := x.c.position(uid)
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

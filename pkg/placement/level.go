package placement

import (
	"cmp"
	"iter"
	"slices"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// A gang may have to share a domain of a topology key, and prefer narrower ones. Each key is a level, and the levels are tried from the narrowest
// outward: the candidates are counted once by the domains of all levels, and only domains that have enough by that count are searched.

// level is one way in which the members of a gang share a domain.
type level struct {
	// key is the label of which members share the value; empty where they may be anywhere.
	key string
	// domains are those of the key within the wider levels; without a key it is one of all nodes.
	domains *topology
	// wider are the domains of the wider levels, from the next one on.
	wider []*topology
	// narrower are the domains of the next narrower level, none of which has room for the gang; nil on the narrowest.
	narrower *topology
	// last is set on the widest level: with no placement there, there is none. If it has a key, members must share its domain.
	last bool
}

// solve solves the gang on the cluster.
func (t *task) solve(g Gang) solution {
	if !g.Topology.OfAll() || t.opts.Ignore.Has(Topology) {
		return t.solveParts(t.candidates)
	}
	return newLevelSearch(t, g, t.c.levels(g.Topology), newListed(t)).solve()
}

// levelSearch is the search for a domain that the members of a gang share.
type levelSearch struct {
	*task
	gang   Gang
	levels []level // the narrowest first
	ground ground
	known  map[*topology][]domain // the ground's
	rooms  map[*topology][]int    // by domain: the room of its candidates
}

func newLevelSearch(t *task, g Gang, levels []level, candidates ground) *levelSearch {
	return &levelSearch{task: t, gang: g, levels: levels, ground: candidates, known: map[*topology][]domain{}, rooms: map[*topology][]int{}}
}

// solve solves the gang on the best domain of the narrowest level that takes all members, or else of the narrowest that takes enough.
func (x *levelSearch) solve() solution {
	var enough *solution
	for _, l := range x.levels {
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
func (c *Cluster) levels(of gang.Topology) []level {
	keys := c.narrowestFirst(of)
	all := []level{{last: true, domains: c.topology(everywhere)}}
	if of.Required != "" {
		all, keys = nil, append(keys, of.Required)
	}
	var wider []*topology
	for i := len(keys) - 1; i >= 0; i-- {
		domains := c.topology(keys[i:]...)
		if n := len(all); len(wider) > 0 && domains.equal(wider[0]) { // another name of the same domains, as of tiers without HyperNodes
			all[n-1].key, all[n-1].domains, wider[0] = keys[i], domains, domains
			continue
		}
		l := level{key: keys[i], domains: domains, wider: wider, last: len(all) == 0}
		all, wider = append(all, l), append([]*topology{l.domains}, wider...)
	}
	slices.Reverse(all)
	for i := 1; i < len(all); i++ {
		all[i].narrower = all[i-1].domains
	}
	return all
}

// narrowestFirst are the keys that the gang prefers. Layers of a network are listed in any order: those with the most domains come first.
func (c *Cluster) narrowestFirst(of gang.Topology) (keys []string) {
	for _, key := range of.Preferred {
		if key != of.Required && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if !slices.ContainsFunc(keys, layered) {
		return keys
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(len(c.topology(b).nodes), len(c.topology(a).nodes)) })
	return keys
}

func layered(key string) bool {
	_, ok := networktopology.Layer(key)
	return ok
}

// solveLevel solves the gang on the best domain of a level. On a level that is preferred, and where only a placement is of use, domains without room
// by the count are not searched: nothing is to be proven about them.
func (x *levelSearch) solveLevel(l level) solution {
	if l.key == "" && len(l.domains.nodes) == 0 { // there is no node
		return x.solveParts(nil)
	}
	if l.key == "" {
		return x.solveInFew(l, domain{})
	}
	domains, ok := x.domainsOf(l)
	if !ok { // the members that have a node are in two domains already
		return solution{packing: x.emptyPacking(), proof: Exhausted}
	}
	if !l.last || !x.ground.proves() {
		domains = slices.DeleteFunc(domains, func(d domain) bool { return !x.couldTake(d) })
	}
	return bestOf(x.task, x.ranked(l, domains), func(d domain) solution {
		a := x.solveInFew(l, d)
		a.domain, a.level = x.name(l, d), l.key
		if a.bound != nil {
			a.bound.Domain = a.domain
		}
		return a
	})
}

// solveInFew solves the gang on a domain of a level that has several domains of a narrower one, which the gang prefers: if that is possible, on as few
// of those as have enough room by the count.
func (x *levelSearch) solveInFew(l level, d domain) solution {
	if l.narrower != nil {
		if few, ok := x.few(l, d); ok {
			if a := x.solveParts(x.ground.candidates(l.narrower, few)); a.proof == Witness && x.full(a.packing.placed) {
				return a
			}
		}
	}
	return x.solveParts(x.ground.candidates(l.domains, []domain{d}))
}

// few returns as few domains of the narrower level, within a domain, as have room for all members by the count: those where members have a node, then
// the largest, and the last of them as small as will do. ok is false if there is no room for all, or if they are all there are.
func (x *levelSearch) few(l level, outer domain) (chosen []domain, ok bool) {
	of := l.narrower
	domains := slices.DeleteFunc(slices.Clone(x.domains(of)), func(d domain) bool { return l.domains.domain[of.first[d.number]] != outer.number })
	x.ground.byFirst(of, domains)
	here := make([]int, len(of.nodes)) // by domain: 1 if members have a node there
	for _, uid := range x.gang.Bound {
		if at, ok := x.c.position(uid); ok && of.domain[at] >= 0 {
			here[of.domain[at]] = 1
		}
	}
	slices.SortStableFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(here[b.number], here[a.number]), cmp.Compare(b.free(), a.free()))
	})
	room, candidates := make([]int, len(x.roles)), 0
	for i, d := range domains {
		next := d
		for _, smaller := range domains[i+1:] {
			if here[d.number] == 0 && smaller.free() < next.free() && x.takesAll(room, smaller.slots) {
				next = smaller
			}
		}
		chosen, candidates = append(chosen, next), candidates+next.candidates
		if x.takesAll(room, next.slots) {
			return chosen, candidates < x.candidatesOf(l.domains, outer.number)
		}
		for role, n := range next.slots {
			room[role] += n
		}
	}
	return nil, false
}

// candidatesOf is how many candidates a domain has.
func (x *levelSearch) candidatesOf(of *topology, number int) int {
	for _, d := range x.domains(of) {
		if d.number == number {
			return d.candidates
		}
	}
	return 0
}

// takesAll reports whether all members fit by the count into two amounts of slots.
func (x *levelSearch) takesAll(room, more []int) bool {
	for i, n := range more {
		if room[i]+n < x.roles[i].count {
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

// domains are those of a topology that have candidates.
func (x *levelSearch) domains(of *topology) []domain {
	all, known := x.known[of]
	if !known {
		all = x.ground.domains(of)
		x.known[of] = all
	}
	return all
}

// domainsOf returns the domains of a level in which the gang may be. With members that have a node it is their domain alone; ok is false if they share
// none.
func (x *levelSearch) domainsOf(l level) (domains []domain, ok bool) {
	only, fixed := x.boundDomain(l.domains)
	if only < 0 && fixed {
		return nil, false
	}
	var within *topology // what the gang must share
	if required := x.gang.Topology.Required; required != "" {
		within = x.c.topology(required)
	}
	for _, d := range x.domains(l.domains) {
		if (!fixed || d.number == only) && (within == nil || within.domain[l.domains.first[d.number]] >= 0) {
			if x.opts.Prefer != nil {
				d.preference = x.preferenceOf(x.ground.candidates(l.domains, []domain{d}))
			}
			domains = append(domains, d)
		}
	}
	return domains, true
}

// preferenceOf sums the preference of nodes over as many members as the gang needs, each node taking as many as fit of the role of which most do.
func (x *levelSearch) preferenceOf(candidates []*candidate) (sum int64) {
	left := x.required
	for _, s := range candidates { // those preferred come first
		n := min(left, slices.Max(s.slots))
		sum += int64(n) * s.preference
		if left -= n; left == 0 {
			break
		}
	}
	return sum
}

// ranked are domains in the order in which the gang is tried on them: those with preferred nodes, then the one with the least room, so that the gang
// goes where it leaves the least behind. Of several with as much room it is the one in the wider domain with the least room, so that the largest one
// elsewhere stays whole; then the one with the most nodes, which is the fullest; names last. Mostly the first one takes it, so the others are not
// sorted before that is known.
func (x *levelSearch) ranked(l level, domains []domain) iter.Seq[domain] {
	compare := func(a, b domain) int {
		order := cmp.Or(cmp.Compare(b.preference, a.preference), cmp.Compare(a.room, b.room))
		for i := 0; i < len(l.wider) && order == 0; i++ {
			order = cmp.Compare(x.roomAround(l.wider[i], l.domains.first[a.number]), x.roomAround(l.wider[i], l.domains.first[b.number]))
		}
		return cmp.Or(order, cmp.Compare(l.domains.nodes[b.number], l.domains.nodes[a.number]), cmp.Compare(l.domains.byName[a.number], l.domains.byName[b.number]))
	}
	return func(yield func(domain) bool) {
		if len(domains) == 0 || !yield(slices.MinFunc(domains, compare)) {
			return
		}
		slices.SortFunc(domains, compare)
		for _, d := range domains[1:] {
			if !yield(d) {
				return
			}
		}
	}
}

// roomAround is how much room there is in the domain that a node is in; 0 if it is in none.
func (x *levelSearch) roomAround(of *topology, at int) int {
	room, known := x.rooms[of]
	if !known {
		room = make([]int, len(of.nodes))
		for _, d := range x.domains(of) {
			room[d.number] = d.room
		}
		x.rooms[of] = room
	}
	if d := of.domain[at]; d >= 0 {
		return room[d]
	}
	return 0
}

// name is a domain's value of the level's key, by which users know it.
func (x *levelSearch) name(l level, d domain) string {
	return x.c.nodes[l.domains.first[d.number]].obj.Labels[l.key]
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

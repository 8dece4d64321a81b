package placement

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The parts of a gang are given a domain one after the other. What is then left is a search that knows nothing of parts: outside its domain no node
// is a candidate for the members of a part.

// partSearch is the search for the domains of all parts, on some candidates.
type partSearch struct {
	*task
	candidates []*candidate
	members    map[*topology][][]*candidate // by domain: the candidates in it
	of         [][]int                      // by role: the parts that it is in
	chosen     []partDomain                 // by part, of those that come first
	least      []int                        // by role: how many of its members the gang needs at least
	apart      bool                         // some parts have their domains for themselves
}

// partDomain is the domain of a part: one of some, nowhere, or, if of is nil, anywhere.
type partDomain struct {
	of     *topology
	number int
}

// nowhere is the number of no domain.
const nowhere = -1

// solveParts solves the gang with each part in a domain of its own.
func (t *task) solveParts(candidates []*candidate) solution {
	if len(t.parts) == 0 {
		return t.solveAffinityGroup(candidates)
	}
	x := &partSearch{task: t, candidates: candidates, members: map[*topology][][]*candidate{}, of: make([][]int, len(t.roles)), least: make([]int, len(t.roles))}
	x.apart = slices.ContainsFunc(t.parts, func(p part) bool { return p.kept != nil })
	for i := range t.roles {
		x.least[i] = t.least(i)
		for k := range t.parts {
			if t.parts[k].roles[i] {
				x.of[i] = append(x.of[i], k)
			}
		}
	}
	if bound := x.countingBound(candidates); bound != nil { // wherever the parts are
		return solution{packing: x.placeSome().packing, proof: CountingBound, bound: bound}
	}
	if x.tooFewDomains() || x.tooFewApart() {
		return solution{packing: x.placeSome().packing, proof: Exhausted}
	}
	if a, ok := x.placeAllInTime(); ok {
		return a
	}
	if a := x.placeSome(); a.proof == Witness {
		return a
	}
	a := x.placeEnough()
	if a.proof == CountingBound { // of what the chosen domains leave to the roles
		a.proof, a.bound = Exhausted, nil
	}
	return a
}

// placeAllInTime is placeAll in half of the time that is left. The rest is for a placement of enough members, or a proof.
func (x *partSearch) placeAllInTime() (a solution, ok bool) {
	now, end := time.Now(), x.deadline
	x.deadline = now.Add(end.Sub(now) / 2)
	a, ok = x.placeAll()
	x.deadline, x.overBudget = end, false
	return a, ok
}

// placeSome gives one part after the other the first domain that takes all of its members, or else the one that takes most. It proves nothing if the members
// placed are not enough.
func (x *partSearch) placeSome() solution {
	defer func() { x.chosen = x.chosen[:0] }()
	for k := range x.parts {
		best, most := partDomain{of: x.parts[k].required(), number: nowhere}, 0
		for _, next := range x.domains(k, x.parts[k].levels) {
			x.chosen = append(x.chosen, next)
			n, all := x.takes(next)
			x.chosen = x.chosen[:k]
			if all {
				best = next
				break
			}
			if n > most {
				best, most = next, n
			}
		}
		x.chosen = append(x.chosen, best)
	}
	return x.solveAffinityGroup(x.confined())
}

// placeAll looks for a placement of all members, with each part in a domain as narrow as it prefers where possible. It proves nothing if it fails.
func (x *partSearch) placeAll() (a solution, ok bool) {
	k := len(x.chosen)
	if k == len(x.parts) {
		a = x.solveAffinityGroup(x.confined())
		return a, a.proof == Witness && x.full(a.packing.placed)
	}
	for _, next := range x.choices(k, x.parts[k].levels) {
		if x.overdue() {
			return solution{}, false
		}
		x.chosen = append(x.chosen, next)
		if _, all := x.takes(next); all {
			a, ok = x.placeAll()
		}
		x.chosen = x.chosen[:k]
		if ok {
			return a, true
		}
	}
	return solution{}, false
}

// placeEnough tries all choices of required domains: the best placement counts, and without one it is proven that there is none.
func (x *partSearch) placeEnough() solution {
	k := len(x.chosen)
	if x.overdue() {
		return solution{packing: x.emptyPacking(), proof: BudgetHit}
	}
	if k == len(x.parts) {
		return x.solveAffinityGroup(x.confined())
	}
	p := &x.parts[k]
	choices := x.choices(k, p.levels[len(p.levels)-1:])
	if len(choices) == 0 || p.kept != nil && x.leastOf(p) == 0 {
		choices = append(choices, partDomain{of: p.required(), number: nowhere}) // a gang may start without the part, and others may need all domains
	}
	return bestOf(x.task, slices.Values(choices), func(next partDomain) solution {
		x.chosen = append(x.chosen, next)
		defer func() { x.chosen = x.chosen[:k] }()
		if x.tooSmall(next) {
			return solution{packing: x.emptyPacking(), proof: Exhausted}
		}
		return x.placeEnough()
	})
}

// choices are the domains of some levels that part k may be in next. Of parts that are alike the domains are in one order: others would only swap them.
func (x *partSearch) choices(k int, levels []*topology) []partDomain {
	alike := k > 0 && x.parts[k-1].class == x.parts[k].class
	if alike && x.parts[k].kept != nil {
		return x.apartFrom(k, levels)
	}
	all := x.domains(k, levels)
	if alike {
		if before := slices.Index(all, x.chosen[k-1]); before >= 0 {
			all = all[before:]
		}
	}
	return all
}

// apartFrom are the choices of a part that is alike the one before it, and may not share its domain: those that come after it in the order of both.
func (x *partSearch) apartFrom(k int, levels []*topology) []partDomain {
	before := x.chosen[k-1]
	x.chosen = x.chosen[:k-1]
	all := x.domains(k, levels)
	x.chosen = append(x.chosen, before)
	if before.number == nowhere {
		return nil
	}
	return all[slices.Index(all, before)+1:]
}

// domains are the domains of some levels that part k may be in, those of the first level first, and of each level the one first that leaves the least behind.
func (x *partSearch) domains(k int, levels []*topology) (all []partDomain) {
	for _, of := range levels {
		if of == nil {
			all = append(all, partDomain{})
			continue
		}
		domains := x.domainsFor(&x.parts[k], of)
		slices.SortStableFunc(domains, func(a, b partSlots) int {
			return cmp.Or(cmp.Compare(b.preference, a.preference), cmp.Compare(a.free, b.free), cmp.Compare(a.number, b.number))
		})
		for _, d := range domains {
			all = append(all, partDomain{of: of, number: d.number})
		}
	}
	return all
}

// partSlots is how much of a domain is for a part.
type partSlots struct {
	number     int
	free       int   // how many of its members fit, each role and each node looked at alone
	preference int64 // of its most preferred node
}

// domainsFor are the domains in which there is a slot for each role of which members are needed, or the one where members of the part have a node.
func (x *partSearch) domainsFor(p *part, of *topology) (domains []partSlots) {
	fixed := nowhere
	for i, node := range p.bound {
		d := of.domain[node]
		if d < 0 || i > 0 && d != fixed {
			return nil
		}
		fixed = d
	}
	slots := make([]int, len(x.roles))
	for number, candidates := range x.in(of) {
		if len(candidates) == 0 || len(p.bound) > 0 && number != fixed {
			continue
		}
		if wide := p.required(); wide != nil && wide.domain[candidates[0].pos] < 0 {
			continue // one that it prefers, and that is in none that it needs
		}
		clear(slots)
		d := partSlots{number: number, preference: math.MinInt64}
		for _, s := range candidates {
			d.preference = max(d.preference, s.preference)
			for i, in := range p.roles {
				if in && x.mayTake(s, i) {
					slots[i] = add(slots[i], s.slots[i])
				}
			}
		}
		enough := true
		for i, in := range p.roles {
			if in {
				enough, d.free = enough && slots[i] >= x.least[i], add(d.free, slots[i])
			}
		}
		if enough && d.free > 0 {
			domains = append(domains, d)
		}
	}
	return domains
}

// in returns the candidates in each domain.
func (x *partSearch) in(of *topology) [][]*candidate {
	if x.members[of] == nil {
		x.members[of] = make([][]*candidate, len(of.nodes))
		for _, s := range x.candidates {
			if d := of.domain[s.pos]; d >= 0 {
				x.members[of][d] = append(x.members[of][d], s)
			}
		}
	}
	return x.members[of]
}

// mayTake reports whether a candidate is in the domains that are chosen for a role.
func (x *partSearch) mayTake(s *candidate, role int) bool {
	for _, k := range x.of[role] {
		if k >= len(x.chosen) {
			break
		}
		if d := x.chosen[k]; d.of != nil && (d.number == nowhere || d.of.domain[s.pos] != d.number) {
			return false
		}
	}
	return !x.keepsOut(s, role)
}

// confined are the candidates as the chosen domains leave them to each role.
func (x *partSearch) confined() []*candidate {
	return x.masked(x.candidates, func(s *candidate, off []bool) {
		for i := range off {
			off[i] = s.slots[i] > 0 && !x.mayTake(s, i)
		}
	})
}

// sharing are the roles of the parts for which one domain is chosen.
func (x *partSearch) sharing(d partDomain) []bool {
	roles := make([]bool, len(x.roles))
	for k, other := range x.chosen {
		for i, in := range x.parts[k].roles {
			roles[i] = roles[i] || in && other == d
		}
	}
	return roles
}

// takes is how many members of the part for which a domain was chosen last are placed there at the first try, and whether all are, with those of the other
// parts for which it is chosen.
func (x *partSearch) takes(d partDomain) (n int, all bool) {
	if d.of == nil || d.number == nowhere {
		return 0, true
	}
	roles := x.sharing(d)
	others := make([]bool, len(roles))
	for i, in := range roles {
		others[i] = !in
	}
	var candidates []*candidate
	for _, s := range x.in(d.of)[d.number] {
		candidates = append(candidates, s.without(others))
	}
	all = true
	for i, placed := range x.greedy(candidates).placed {
		all = all && (!roles[i] || placed == x.roles[i].count)
		if x.parts[len(x.chosen)-1].roles[i] {
			n += placed
		}
	}
	return n, all
}

// tooSmall reports whether a domain has less of a resource than is needed at least by the parts for which it is chosen.
func (x *partSearch) tooSmall(d partDomain) bool {
	return d.of != nil && d.number != nowhere && x.timesIn(x.sharing(d), x.in(d.of)[d.number], 1) == 0
}

// tooFewDomains reports whether all domains together take fewer parts that are alike than there are, with no more members of each than the gang needs.
func (x *partSearch) tooFewDomains() bool {
	for k := 0; k < len(x.parts); {
		p := &x.parts[k]
		n := 1
		for k+n < len(x.parts) && x.parts[k+n].class == p.class {
			n++
		}
		if of := p.required(); of != nil && len(p.bound) == 0 {
			taken := 0
			for _, candidates := range x.in(of) {
				taken += x.partsIn(p, candidates, n)
			}
			if taken < n {
				return true
			}
		}
		k += n
	}
	return false
}

// partsIn is how many parts like p a domain takes at most, up to n, with no more members of each than the gang needs.
func (x *partSearch) partsIn(p *part, candidates []*candidate, n int) int {
	for i, in := range p.roles {
		if !in || x.least[i] == 0 {
			continue
		}
		slots := 0
		for _, s := range candidates {
			slots = add(slots, s.slots[i])
		}
		// A role has its slots on a node up to its own members, so that more of them may hold more parts: only none is certain.
		if slots < x.least[i] {
			n = 0
		}
	}
	return x.timesIn(p.roles, candidates, n)
}

// timesIn is how many times candidates have the resources of the least members of some roles, up to n.
func (x *partSearch) timesIn(roles []bool, candidates []*candidate, n int) int {
	for pos := range x.c.names.list {
		var each, free int64
		for i, in := range roles {
			if in {
				each += x.roles[i].rules.requests[pos] * int64(x.least[i])
			}
		}
		if each == 0 {
			continue
		}
		for _, s := range candidates {
			free += s.free[pos]
		}
		n = min(n, int(free/each))
	}
	return n
}

// add does not wrap: a slot is worth nothing to nodes on which the resources of a role do not count.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

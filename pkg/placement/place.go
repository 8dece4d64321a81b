package placement

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Place finds a placement of the whole gang on what is free, or proves that there is none. The result depends only on the
// cluster and the gang, not on the order of either, unless the budget is hit. It does not read the clock but for the budget.
//
// Members whose claims have devices that no pod uses go where these are, or else where others are to be had.
func Place(ctx context.Context, c *Cluster, g Gang, opts Options) Result {
	found := place(ctx, c, g, opts)
	after := c.releasedFor(g)
	if found.Fits() || after == c || opts.Ignore.Has(DRADevices) {
		return found
	}
	found = place(ctx, after, g, opts)
	found.Released = c.lostBy(after)
	return found
}

func place(ctx context.Context, c *Cluster, g Gang, opts Options) Result {
	ctx, cancel := context.WithTimeout(ctx, opts.budget())
	defer cancel()
	if desired(g.Roles) > maxRoles {
		t := newTask(ctx, c, Gang{}, opts)
		t.limit = fmt.Sprintf("more than %d roles", maxRoles)
		r := t.result(g, solution{packing: t.emptyPacking(), proof: BudgetHit})
		r.Unmodelled = []string{t.limit}
		return r
	}
	g.Topology = c.withDomains(g.Topology)
	t := newTask(ctx, c, g, opts)
	t.noteUnmodelled()
	t.findConstraints(ctx) //nolint:contextcheck // here and below: plugins that work on values take a context and have no use for one
	if !t.overBudget {     // else not every constraint is known
		if found, ok := t.placeByShape(g); ok { //nolint:contextcheck // as above
			r := t.result(g, t.bounded(found))
			r.Unmodelled = slices.Sorted(maps.Keys(t.unmodelled))
			return r
		}
	}
	t.findCandidates() //nolint:contextcheck // as above
	t.order(t.candidates)
	t.findParts(g)
	found := solution{packing: t.emptyPacking(), proof: BudgetHit}
	if !t.overBudget && !t.undecided() { // else not every candidate is known, and what is proven of some is not of all
		found = t.solve(g) //nolint:contextcheck // as above; the budget ends it
	}
	if found.proof != Witness && t.undecided() {
		found.proof, found.bound = BudgetHit, nil
	}
	r := t.result(g, t.bounded(found))
	if t.undecided() {
		t.unmodelled[devicesUndecided] = true
	}
	r.Unmodelled = slices.Sorted(maps.Keys(t.unmodelled))
	return r
}

// maxMembers is how many members are placed one by one: more than a cluster of 5,000 nodes can run. Job.spec.parallelism has no maximum, and where
// the resources of a role do not count, neither has a node.
const maxMembers = 200_000

// bounded is a solution with a placement of at most maxMembers; one with more is not proven.
func (t *task) bounded(found solution) solution {
	placed := int64(0)
	for _, n := range found.packing.placed {
		placed += int64(n)
	}
	if placed <= maxMembers {
		return found
	}
	t.limit = fmt.Sprintf("more than %d members", maxMembers)
	t.unmodelled[t.limit] = true
	return solution{packing: t.emptyPacking(), proof: BudgetHit}
}

// desired counts the roles of which members are to be placed.
func desired(roles []Role) (n int) {
	for _, r := range roles {
		if r.Count > 0 {
			n++
		}
	}
	return n
}

// maxRoles is how many roles a gang may have: sets of them are kept in the bits of a uint64.
const maxRoles = 64

// solution is the outcome of a search on some of the candidates: the best packing on them, and what the answer is worth.
type solution struct {
	packing packing
	proof   Proof
	bound   *Bound
	// domain is that of the placement, and level the topology key that it is a value of.
	domain, level string
}

// solveAffinityGroup solves a gang whose members all have affinity to each other, which go to one domain.
func (t *task) solveAffinityGroup(candidates []*candidate) solution {
	if len(t.sharedKeys) == 0 {
		return t.solveDomain(candidates)
	}
	domains := map[string][]*candidate{}
	for _, s := range candidates {
		values := make([]string, 0, len(t.sharedKeys))
		for _, key := range t.sharedKeys {
			if value, ok := s.n.obj.Labels[key]; ok {
				values = append(values, value)
			}
		}
		if len(values) == len(t.sharedKeys) {
			name := strings.Join(values, "/")
			domains[name] = append(domains[name], s)
		}
	}
	a := t.solveEach(domains, t.solveDomain)
	if len(t.sharedKeys) == 1 {
		a.level = t.sharedKeys[0]
	}
	return a
}

// solveEach solves the gang on each domain and chooses the best solution.
func (t *task) solveEach(domains map[string][]*candidate, solve func([]*candidate) solution) solution {
	return bestOf(t, slices.Values(t.byFreeSlots(domains)), func(value string) solution {
		a := solve(domains[value])
		a.domain = value
		if a.bound != nil {
			a.bound.Domain = value
		}
		return a
	})
}

// solveCandidates solves the gang on some candidates.
func (t *task) solveCandidates(candidates []*candidate) solution {
	bound := t.countingBound(candidates)
	p, exact := t.pack(candidates, bound != nil)
	if t.crossNode != nil {
		// Without a placement where members do not matter to each other across nodes there is none where they do.
		impossible := bound != nil || exact && !t.enough(p.placed)
		if t.crossNode.empty() {
			p = t.realised(p)
		}
		if !t.crossNode.empty() || !impossible && !t.full(p.placed) {
			searched, all := t.search(candidates, impossible)
			if exact = all; !t.crossNode.empty() || t.betterThan(searched.placed, p.placed) {
				p = searched
			}
		}
		exact = exact || impossible
	}
	a := solution{packing: p, bound: bound}
	switch {
	case t.enough(p.placed):
		a.proof, a.bound = Witness, nil
	case bound != nil:
		a.proof = CountingBound
	case exact:
		a.proof = Exhausted
	default:
		a.proof = BudgetHit
	}
	return a
}

// bestOf chooses the best of several solutions; it stops at one that places the whole gang.
func bestOf[T any](t *task, all iter.Seq[T], solve func(T) solution) solution {
	best := solution{packing: t.emptyPacking(), proof: CountingBound, bound: &Bound{Need: int64(t.required)}}
	if t.enough(best.packing.placed) {
		best.proof, best.bound = Witness, nil
	}
	unproven, counted, first := false, true, true
	for one := range all {
		a := solve(one)
		unproven = unproven || a.proof == BudgetHit
		counted = counted && a.proof == CountingBound
		if first || t.preferred(a, best) {
			best, first = a, false
		}
		if t.full(best.packing.placed) {
			break
		}
	}
	switch {
	case best.proof == Witness:
	case unproven:
		best.proof, best.bound = BudgetHit, nil
	case !counted:
		best.proof, best.bound = Exhausted, nil
	}
	return best
}

// preferred reports whether solution a is better than b: a witness before none, then more members.
func (t *task) preferred(a, b solution) bool {
	if (a.proof == Witness) != (b.proof == Witness) {
		return a.proof == Witness
	}
	return a.packing.total() > b.packing.total()
}

// byFreeSlots orders domains by slots, those with the fewest first, so that the gang goes where it leaves the least behind.
func (t *task) byFreeSlots(domains map[string][]*candidate) []string {
	slots := map[string]int{}
	for value, candidates := range domains {
		for _, s := range candidates {
			for _, n := range s.slots {
				slots[value] += n
			}
		}
	}
	return slices.SortedFunc(maps.Keys(domains), func(a, b string) int {
		return cmp.Or(cmp.Compare(slots[a], slots[b]), cmp.Compare(a, b))
	})
}

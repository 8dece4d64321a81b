package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Place finds a placement of the whole gang on what is free, or proves that there is none. The result depends only on the
// cluster and the gang, not on the order of either, unless the budget is hit. It does not read the clock but for the budget.
func Place(ctx context.Context, c *Cluster, g Gang, opts Options) Result {
	t := newTask(ctx, c, g, opts)
	if len(t.classes) > maxClasses {
		r := t.result(g, answer{packing: t.nothing(), proof: BudgetHit})
		r.Unmodelled = []string{fmt.Sprintf("more than %d roles", maxClasses)}
		return r
	}
	t.note()
	t.relate() //nolint:contextcheck // here and below: plugins that work on values take a context and have no use for one
	t.survey() //nolint:contextcheck // as above
	if len(t.classes) > 1 || t.far != nil || len(t.shared) > 0 {
		t.classify(t.sites)
	}
	t.sort(t.sites)
	answer := t.solveAll(g) //nolint:contextcheck // as above; the budget ends it
	r := t.result(g, answer)
	r.Unmodelled = slices.Sorted(maps.Keys(t.notes))
	return r
}

// maxClasses is how many roles a gang may have: sets of roles are kept in the bits of a word.
const maxClasses = 64

// answer is what a search found on some of the sites.
type answer struct {
	packing packing
	proof   Proof
	bound   *Bound
	domain  string
}

// solveOn answers for a set of sites, whatever members share.
func (t *task) solveOn(sites []*site) answer {
	bound := t.bound(sites)
	p, exact := t.pack(sites)
	if t.far != nil {
		// Without a placement where members do not matter to each other across nodes there is none where they do.
		impossible := bound != nil || exact && !t.enough(p.placed)
		p, exact = t.search(sites, impossible)
		exact = exact || impossible
	}
	a := answer{packing: p, bound: bound}
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

// nothing is a packing of no member.
func (t *task) nothing() packing { return packing{placed: make(pattern, len(t.classes))} }

// Pods returns the placement as pods that are bound to their nodes, for Cluster.With. Their names and UIDs tell the
// members apart and are not those of real pods.
func (r Result) Pods(g Gang) []*corev1.Pod {
	var out []*corev1.Pod
	for _, a := range r.Placement {
		i := slices.IndexFunc(g.Roles, func(role Role) bool { return role.Name == a.Role })
		out = append(out, member(g.Roles[i].Pod, a))
	}
	return out
}

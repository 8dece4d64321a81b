package preemption

import (
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// exact looks at every set of candidates up to a priority that may cost less than
// the best so far, if they are few, and records whether it came to an end.
func (s *search) exact(limit int32) {
	var open []int
	for i, u := range s.units {
		if u.Priority <= limit {
			open = append(open, i)
		}
	}
	if len(open) > exactUnits {
		return
	}
	s.branch(open, make(set, len(s.units)), true)
	s.best.Cheapest = s.ctx.Err() == nil
}

// branch decides on the first of those who are open, having decided on others.
// More evicted makes the preemptor fit better and costs more, so a set is not
// looked into further once it is enough, or costs as much as the best.
func (s *search) branch(open []int, evicted set, grown bool) {
	if s.ctx.Err() != nil {
		return
	}
	if grown {
		cost := costOf(s.chosen(evicted), s.budgets)
		if cost.compareHarm(s.best.Cost) > 0 {
			return
		}
		if r := s.place(evicted, placement.Options{}); r.Fits() {
			s.consider(evicted, r)
			return
		}
		if cost.compareHarm(s.best.Cost) == 0 {
			return // one more is needed, and costs more
		}
	}
	if len(open) == 0 || !s.fits(s.with(evicted, open)) {
		return
	}
	i, rest := open[0], open[1:]
	u := s.units[i]
	s.branch(rest, evicted, false) // it is spared
	if whole, ok := s.whole[u.Gang]; u.Kind == AboveMin && ok && evicted[whole] {
		return // it goes with the others
	}
	more := slices.Clone(evicted)
	more[i] = true
	if u.Kind == AboveMin && !s.allowed(more, u.Gang) {
		return
	}
	s.branch(rest, more, true)
}

// with is a set and all who are open.
func (s *search) with(e set, open []int) set {
	all := slices.Clone(e)
	for _, i := range open {
		all[i] = true
	}
	return all
}

// Query is the input of [Choose].
type Query struct {
	// Cluster is without those that leave already, and with what is kept from the
	// preemptor.
	Cluster *placement.Cluster
	// Gang is the preemptor; its minimum is what it needs to start.
	Gang       placement.Gang
	Candidates Candidates
	Budgets    []*policyv1.PodDisruptionBudget
}

// Choice is a set of victims without which the preemptor has a placement. None of
// them can be spared where it is placed; for other nodes that is tried in a part of the time.
type Choice struct {
	Units []Unit
	Cost  Cost
	// Placement is where the preemptor's members then fit.
	Placement []placement.Assignment
	// Cheapest reports that no other set costs less. Otherwise there were too many
	// candidates, or too little time, to be sure.
	Cheapest bool
}

// Verdict is the outcome of a query.
type Verdict string

// The verdicts.
const (
	Found Verdict = "found"
	// Impossible: there is no placement even without all candidates.
	Impossible Verdict = "impossible"
	// Unknown: the time ran out before any set was found.
	Unknown Verdict = "unknown"
)

// exactUnits is how many candidates there may be for every set of them to be
// looked at.
const exactUnits = 16

// Choose finds the victims that cost least. It takes no longer than the budget.
func Choose(ctx context.Context, q Query, budget time.Duration) (Choice, Verdict) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	s := newSearch(ctx, q, budget)
	all := s.everything(func(Unit) bool { return true })
	if r := s.place(all, placement.Options{}); !r.Fits() {
		if r.Impossible() {
			return Choice{}, Impossible
		}
		return Choice{}, Unknown
	}
	pool := s.pool(all)
	for _, rank := range []func(*corev1.Node) int64{s.byNeed(pool), s.byCrowd(pool), nil} {
		s.placeOnRanked(pool, rank)
	}
	placed := s.best != nil
	if !placed {
		s.consider(pool, s.place(pool, placement.Options{}))
	}
	if s.best == nil {
		return Choice{}, Unknown
	}
	s.trim()
	if !placed && ctx.Err() != nil {
		return Choice{}, Unknown // some of them need not go
	}
	limit := s.highest(pool)
	if s.violates(pool) {
		limit = s.highest(all) // budgets count for more than priorities
	}
	s.exact(limit)
	return *s.best, Found
}

// Most is how many members, those with a node included, can have one if all candidates leave.
func (q Query) Most(ctx context.Context, budget time.Duration) int32 {
	s := newSearch(ctx, q, budget)
	r := s.place(s.everything(func(Unit) bool { return true }), placement.Options{})
	return int32(len(q.Gang.Bound) + len(r.Placement))
}

// set is which of the units are evicted. With Whole, the same gang's AboveMin
// is not in it.
type set []bool

// search is the work on one query.
type search struct {
	Query
	ctx      context.Context //nolint:containedctx // a search lasts as long as one call
	budget   time.Duration
	units    []Unit
	budgets  *budgets
	whole    map[string]int   // the unit of a gang as a whole
	aboveMin map[string][]int // those of its members
	best     *Choice
	bestSet  set
}

func newSearch(ctx context.Context, q Query, budget time.Duration) *search {
	s := &search{Query: q, ctx: ctx, budget: budget, units: q.Candidates.Units, whole: map[string]int{}, aboveMin: map[string][]int{}}
	s.budgets = budgetsOf(s.units, q.Budgets)
	for i, u := range s.units {
		switch u.Kind {
		case Single:
		case Whole:
			s.whole[u.Gang] = i
		case AboveMin:
			s.aboveMin[u.Gang] = append(s.aboveMin[u.Gang], i)
		}
	}
	return s
}

// everything is all pods of those units that are accepted.
func (s *search) everything(accept func(Unit) bool) set {
	return s.those(func(i int) bool { return accept(s.units[i]) })
}

// those are the units that are accepted, gangs as a whole.
func (s *search) those(accept func(i int) bool) set {
	e := make(set, len(s.units))
	for i, u := range s.units {
		e[i] = u.Kind != AboveMin && accept(i)
	}
	return e
}

// on are those of a set that have a pod on some nodes.
func (s *search) on(e set, nodes func(name string) bool) set {
	on := slices.Clone(e)
	for i, u := range s.units {
		on[i] = e[i] && u.on(nodes)
	}
	return on
}

// pool is the smallest set of candidates, by whom budgets guard and by priority,
// that is enough.
func (s *search) pool(all set) set {
	unguarded := func(u Unit) bool { return s.budgets.violations([]Unit{u}) == 0 }
	accept := unguarded
	if !s.fits(s.everything(unguarded)) {
		accept = func(Unit) bool { return true }
	}
	var priorities []int32
	for i, u := range s.units {
		if all[i] && accept(u) {
			priorities = append(priorities, u.Priority)
		}
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	upTo := func(i int) set {
		return s.everything(func(u Unit) bool { return accept(u) && u.Priority <= priorities[i] })
	}
	low, high := 0, len(priorities)-1
	for low < high {
		if mid := (low + high) / 2; s.fits(upTo(mid)) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return upTo(high)
}

// highest is the highest priority in a set.
func (s *search) highest(e set) int32 {
	highest := int32(math.MinInt32)
	for _, u := range s.chosen(e) {
		highest = max(highest, u.Priority)
	}
	return highest
}

// violates reports whether a set exceeds budgets.
func (s *search) violates(e set) bool { return s.budgets.violations(s.chosen(e)) > 0 }

// chosen are the units of a set.
func (s *search) chosen(e set) (units []Unit) {
	for i, in := range e {
		if in {
			units = append(units, s.units[i])
		}
	}
	return units
}

func (s *search) without(e set) *placement.Cluster {
	return s.Cluster.Without(gang.UIDs(podsOf(s.chosen(e)))...)
}

func (s *search) place(e set, opts placement.Options) placement.Result {
	opts.Budget = s.budget
	return placement.Place(s.ctx, s.without(e), s.Gang, opts)
}

func (s *search) fits(e set) bool { return s.place(e, placement.Options{}).Fits() }

// consider keeps a set if it is enough and costs less than the best so far.
func (s *search) consider(e set, r placement.Result) {
	if !r.Fits() {
		return
	}
	units := s.chosen(e)
	cost := costOf(units, s.budgets)
	if s.best == nil || cost.Compare(s.best.Cost) < 0 {
		s.best, s.bestSet = &Choice{Units: units, Cost: cost, Placement: r.Placement}, slices.Clone(e)
	}
}

// allowed reports whether no gang loses more members than it can do without.
func (s *search) allowed(e set, gang string) bool {
	n := 0
	for _, i := range s.aboveMin[gang] {
		if e[i] {
			n++
		}
	}
	return n <= s.Candidates.Spare[gang]
}

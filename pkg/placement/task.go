package placement

import (
	"cmp"
	"context"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

// class is a role inside a search: identical members that differ only by number.
type class struct {
	role   int // position in the gang
	name   string
	count  int // members to place
	min    int // members that must be placed
	rules  *rules
	needs  []need
	claims []*resourceapi.ResourceClaim // that every member has for itself
}

// need is one resource that a class asks for.
type need struct {
	pos    int
	amount int64
}

// task is one gang to be placed on one cluster. It is used by one goroutine.
type task struct {
	ended    func() bool // nobody waits for the answer any more
	c        *Cluster
	opts     Options
	classes  []class // ordered by name, so that the order of roles in the gang does not matter
	required int     // members that must be placed, less those that are bound
	near     []nearRule
	far      *far     // nil if members do not matter to each other across nodes
	group    []string // topology keys of which all members must share the values
	shared   []*sharedVolume
	sites    []*site
	deadline time.Time
	steps    int
	late     bool
	notes    map[string]bool // what is not modelled
	claiming bool            // some class has claims
	tried    map[string]bool // what is known of devices
}

func newTask(ctx context.Context, c *Cluster, g Gang, opts Options) *task {
	budget := opts.Budget
	if budget <= 0 {
		budget = DefaultBudget
	}
	t := &task{ended: func() bool { return ctx.Err() != nil }, c: c, opts: opts, deadline: time.Now().Add(budget), notes: map[string]bool{}, tried: map[string]bool{}}
	if d, ok := ctx.Deadline(); ok && d.Before(t.deadline) {
		t.deadline = d
	}
	for i, r := range g.Roles {
		if r.Count <= 0 {
			continue
		}
		k := class{role: i, name: r.Name, count: int(r.Count), min: int(min(max(r.Min, 0), r.Count)), rules: c.rules(r.Pod, opts.Ignore)}
		for pos, amount := range k.rules.need {
			if amount > 0 {
				k.needs = append(k.needs, need{pos, amount})
			}
		}
		t.classes = append(t.classes, k)
	}
	slices.SortFunc(t.classes, func(a, b class) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.role, b.role)) })
	t.required = int(g.required())
	return t
}

// expired tells whether the budget is used up. It looks at the clock only now and then.
func (t *task) expired() bool {
	if t.steps++; t.steps%256 == 0 {
		return t.overdue()
	}
	return t.late
}

// overdue looks at the clock.
func (t *task) overdue() bool {
	t.late = t.late || t.ended() || !time.Now().Before(t.deadline)
	return t.late
}

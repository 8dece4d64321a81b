package placement

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// task is one gang to be placed on one cluster. It is used by one goroutine.
type task struct {
	cancelled     func() bool // the caller does not wait any more
	c             *Cluster
	opts          Options
	roles         []searchRole   // ordered by name, so that the order of roles in the gang does not matter
	required      int            // members that must be placed, less those that are bound
	sameNode      []sameNodeRule // what keeps members off each other's node
	crossNode     *crossNode     // what ties members to each other across nodes; nil if nothing does
	sharedKeys    []string       // topology keys of which all members must share the values
	sharedVolumes []*sharedVolume
	parts         []part
	candidates    []*candidate
	deadline      time.Time
	steps         int
	completed     int // steps of completions
	overBudget    bool
	unmodelled    map[string]bool // names of constraints
	limit         string          // beyond which nothing is searched; empty for none
	devices       *deviceFit      // nil if no member has resource claims
	attach        *attachFit      // nil if no member has volumes of which nodes can attach only so many
}

// searchRole is a role of the gang, parsed for a search.
type searchRole struct {
	index   int // position in the gang
	name    string
	count   int // members to place
	min     int // members that must be placed
	rules   *rules
	charges []charge
}

// charge is the amount of one resource that a member is charged; pos is its position in the names of the cluster.
type charge struct {
	pos    int
	amount int64
}

// newTask parses the gang and starts the clock of its budget.
func newTask(ctx context.Context, c *Cluster, g Gang, opts Options) *task {
	t := &task{cancelled: func() bool { return ctx.Err() != nil }, c: c, opts: opts, deadline: time.Now().Add(opts.budget()), unmodelled: map[string]bool{}}
	if d, ok := ctx.Deadline(); ok && d.Before(t.deadline) {
		t.deadline = d
	}
	for i, r := range g.Roles {
		if r.Count <= 0 || t.overdue() {
			continue
		}
		k := searchRole{index: i, name: r.Name, count: int(r.Count), min: int(min(max(r.Min, 0), r.Count)), rules: c.rules(ctx, r.Pod, opts.Ignore.Union(r.Ignore))}
		for pos, amount := range k.rules.requests {
			if amount > 0 {
				k.charges = append(k.charges, charge{pos, amount})
			}
		}
		t.roles = append(t.roles, k)
	}
	slices.SortFunc(t.roles, func(a, b searchRole) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.index, b.index)) })
	t.required = int(g.required())
	return t
}

// findConstraints finds the constraints between members: those on one node, and those across nodes. Most gangs have neither.
func (t *task) findConstraints(ctx context.Context) {
	infos := make([]*framework.PodInfo, len(t.roles))
	for i := range t.roles {
		infos[i] = podInfo(t.roles[i].rules.pod)
	}
	t.devices = newDeviceFit(ctx, t)
	t.attach = newAttachFit(t)
	t.addHostPorts()
	t.addDisks()
	t.findSharedVolumes()
	x := &crossNode{t: t, keyIndex: map[string]int{}, affinity: make([]*affinityRule, len(t.roles)), spread: make([][]*spreadRule, len(t.roles))}
	x.addExclusiveClaims()
	for a := range infos {
		if t.ignores(a, PodAntiAffinity) {
			continue
		}
		for _, term := range infos[a].RequiredAntiAffinityTerms {
			if t.overdue() {
				return
			}
			for b := range infos {
				if t.matches(term, b) {
					x.addAntiAffinity(term.TopologyKey, a, b)
				}
			}
		}
	}
	for i := range infos {
		if t.overdue() {
			return
		}
		x.addAffinity(infos, i)
		x.addSpread(i)
	}
	x.simplifyAffinity(infos)
	if !x.empty() || t.devices.takesOnce() {
		t.crossNode = x
	}
}

// ignores reports whether a constraint does not count for the members of a role.
func (t *task) ignores(i int, constraint Constraint) bool {
	return t.roles[i].rules.ignore.Has(constraint)
}

// noteUnmodelled names the constraints of the members, and between them, that this package does not evaluate.
func (t *task) noteUnmodelled() {
	for i := range t.roles {
		for _, note := range t.roles[i].rules.unmodelled {
			t.unmodelled[note] = true
		}
	}
}

// take charges n members of the role; a negative n gives them back.
func (k *searchRole) take(free []int64, n int64) {
	for _, c := range k.charges {
		free[c.pos] -= c.amount * n
	}
}

// alone returns how many members fit on a node by amounts, at most count.
func (k *searchRole) alone(n *node) int {
	if len(k.rules.absent) > 0 {
		return 0
	}
	return min(k.count, k.room(n))
}

// room returns how many members fit on a node by amounts, however many there are; a role that requests nothing has no more than its own.
func (k *searchRole) room(n *node) int {
	if len(k.charges) == 0 {
		return k.count
	}
	slots := int64(math.MaxInt64)
	for _, c := range k.charges {
		slots = min(slots, (n.alloc.at(c.pos)-n.used.at(c.pos))/c.amount)
	}
	return int(max(slots, 0))
}

// least is how many members of a role must be placed at least: if all of the other roles are.
func (t *task) least(i int) int {
	return max(t.roles[i].min, t.required-(t.members()-t.roles[i].count), 0)
}

// members is how many members are to be placed.
func (t *task) members() int {
	sum := 0
	for i := range t.roles {
		sum += t.roles[i].count
	}
	return sum
}

// enough reports whether the placed members make the gang start.
func (t *task) enough(placed combination) bool {
	sum := 0
	for i, n := range placed {
		if n < t.roles[i].min {
			return false
		}
		sum += n
	}
	return sum >= t.required
}

// full reports whether all members are placed.
func (t *task) full(placed combination) bool {
	for i, n := range placed {
		if n < t.roles[i].count {
			return false
		}
	}
	return true
}

// betterThan reports whether placing a is better than placing b.
func (t *task) betterThan(a, b combination) bool {
	if x, y := t.enough(a), t.enough(b); x != y {
		return x
	}
	sum := 0
	for i := range a {
		sum += a[i] - b[i]
	}
	if sum != 0 {
		return sum > 0
	}
	return slices.Compare(a, b) > 0
}

// emptyPacking is a packing of no member.
func (t *task) emptyPacking() packing { return packing{placed: make(combination, len(t.roles))} }

// expired reports whether the budget is used up. It looks at the clock only now and then.
func (t *task) expired() bool {
	if t.steps++; t.steps%256 == 0 {
		return t.overdue()
	}
	return t.overBudget
}

// overdue looks at the clock.
func (t *task) overdue() bool {
	t.overBudget = t.overBudget || t.cancelled() || !time.Now().Before(t.deadline)
	return t.overBudget
}

// undecided reports whether the time ended before it was known whether some node has the devices that members request.
func (t *task) undecided() bool {
	return t.devices != nil && t.devices.undecided || slices.ContainsFunc(t.roles, func(k searchRole) bool { return k.rules.undecided })
}

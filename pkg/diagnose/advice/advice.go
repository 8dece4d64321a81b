// Package advice searches for what would make a gang start. Every action is tried on a changed snapshot, through all stages,
// before it is offered. It is pure but for the clock that it is given.
package advice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Options bound the work.
type Options struct {
	stages.Options
	// Time is what the whole search may take, by Clock; 0 is no limit.
	Time  time.Duration
	Clock func() time.Time
}

// Found is what a search came to.
type Found struct {
	// Actions would make the gang start, the best first.
	Actions []answer.Action
	// Cut are the kinds of action for which the time was up before everything was tried.
	Cut []answer.ActionKind
}

// search is one search for one gang: what the searches for single kinds of action have in common. Each of these is a type of its own that embeds it.
type search struct {
	budget
	tools
	w    *view.View
	g    *gang.Gang
	base *stage.Diagnosis
	// owned is found when it is first needed.
	owned *whatif.Owned
	// reader is whom the actions are written for.
	reader audience.Reader
	// depth counts searches on behalf of gangs that are ahead.
	depth int
	// behind is true for what is behind a gang that runs in part.
	behind bool
	// again is true where the gang starts as large as it is once its members are made again: no other step is a way out.
	again bool
	// upon is what this search goes on from; nil for one in the cluster as it is.
	upon *upon
	// rests are the searches that go on from this one, and from those, in the order in which they were begun.
	rests []*search
	// few is what the search for minimal sets knows already.
	few few
	// attempts are changes that do not start the gang, and started is the last one that does; ended are those of consumers that end or are evicted.
	attempts []*attempt
	started  *attempt
	ended    []ended

	actions []answer.Action
}

// tools are what a search tries things with, until the caller's context ends.
type tools struct {
	place    func(*placement.Cluster, placement.Gang, time.Duration) placement.Result
	roomFor  func(*placement.Cluster, placement.Gang, placement.Role) placement.Room
	diagnose func(*view.View, *gang.Job) *stage.Diagnosis
	// usual is the time that one placement may take.
	usual time.Duration
}

// resizable are the reasons for which another size, another rule or more room may help. Where something is broken or
// refused, none of that does.
var resizable = []answer.Code{
	answer.NSQuota, answer.NSQuotaTooSmall, answer.QueueQuota, answer.QueueTooSmall, answer.KueueQuota, answer.TooBig, answer.NodeNotReady, answer.NoDevicePlugin,
	answer.GPUUnhealthy, answer.StuckTerminating, answer.NodesBusy, answer.Fragmented, answer.InsufficientCPU,
	answer.InsufficientMemory, answer.InsufficientStorage, answer.InsufficientPods, answer.TopologyFragmented, answer.TopologySpread, answer.VolumeZone,
	answer.DRAUnallocatable, answer.SlotStolen, answer.MemberLost, answer.GangBypassed, answer.MutualDeadlock, answer.QueueOrder, answer.ReservedByOthers,
}

// exclusiveVolume reports whether a finding is that a volume for one pod is in use: its user may end, and fewer members may not need it. Once
// members have nodes, that is a matter of the nodes that they have.
func exclusiveVolume(f *stage.Finding) bool {
	return f.Code == answer.VolumeMultiAttach && f.Stage == answer.StagePlacement
}

// keptByScheduler reports whether a finding is that the scheduler keeps the room for others. What it keeps is in its memory, so that nothing can be
// tried.
func keptByScheduler(f *stage.Finding) bool {
	return f.Code == answer.ReservedByOthers && f.Stage == answer.StageOrder
}

// paused reports whether a finding is that Kueue tries again at some time, or when pods that cannot start are ready, or when those are gone that it has preempted for the gang: nothing
// brings that forward, and no end of a job does.
func paused(f *stage.Finding) bool {
	preempting := f.Facts["preempting"] != nil && f.Verdict == answer.Waiting
	return f.Code == answer.KueueQuota && (f.Facts["requeueAt"] != nil || f.Facts["unstarted"] == true || preempting)
}

// overstated reports whether a finding is that the gang's PodGroup states more than its members request, and that what they request is there: another size changes no more than
// what is stated.
func overstated(f *stage.Finding) bool { return f.Facts["overstated"] == true }

// Search returns what would make the gang of a result start.
func Search(ctx context.Context, w *view.View, base *stage.Diagnosis, opts Options) Found {
	s := newSearch(ctx, w, base, opts)
	if s == nil {
		return Found{}
	}
	return s.whole()
}

// newSearch is the search in the cluster as it is; nil where nothing would make the gang start, or it starts.
func newSearch(ctx context.Context, w *view.View, base *stage.Diagnosis, opts Options) *search {
	behind := base.Behind != nil
	if behind {
		base = base.Behind
	}
	if base.Primary == nil || base.Verdict.Starts() || base.Verdict == answer.Uncertain || base.Verdict == answer.Failed {
		return nil
	}
	s := &search{budget: budget{now: opts.Clock, stopped: func() bool { return ctx.Err() != nil }}, w: w, g: base.Gang, base: base, reader: opts.Reader, behind: behind, tools: tools{
		place: func(c *placement.Cluster, g placement.Gang, d time.Duration) placement.Result {
			return placement.Place(ctx, c, g, placement.Options{Budget: d})
		},
		roomFor: func(c *placement.Cluster, g placement.Gang, role placement.Role) placement.Room {
			return c.RoomFor(ctx, g, role)
		},
		diagnose: func(w *view.View, job *gang.Job) *stage.Diagnosis {
			r := stages.Evaluate(ctx, w, job, opts.Options)
			if behind && r.Behind != nil {
				return r.Behind
			}
			return r
		},
		usual: opts.Budget,
	}}
	if s.now == nil {
		s.now = time.Now
	}
	if opts.Time > 0 {
		s.end = s.now().Add(opts.Time)
	}
	return s
}

// whole searches for single actions, and for several together.
func (s *search) whole() Found {
	base := s.base // which the diagnosis of a helper takes the place of
	s.single()
	if !base.Primary.Helper && (base.Verdict == answer.Blocked || !s.usersWay()) {
		s.within(answer.Fix, 1, stepper{s}.steps)
	}
	return s.ordered()
}

// single searches for single actions that start the gang.
func (s *search) single() {
	s.part(answer.Fix, fixer{s}.fixes)
	primary := s.base.Primary
	switch {
	case primary.Helper:
		s.ofHelper(s.base.Helper)
		return
	case s.g.LacksForGood() > 0: // whatever room there is
	case slices.Contains(resizable, primary.Code) && !keptByScheduler(primary) && !paused(primary) && !primary.Reported || exclusiveVolume(primary):
		s.alternatives()
	}
	if len(s.actions) == 0 && primary.Code == answer.SelectorNoMatch {
		s.part(answer.Relax, relaxer{s}.relax) // no value of a label helps, but the rule can go
	}
}

// ordered is what the search came to, in its order.
func (s *search) ordered() Found {
	slices.SortStableFunc(s.actions, func(a, b answer.Action) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Devices, a.Devices))
	})
	return Found{Actions: s.actions, Cut: s.cut}
}

// ofHelper searches for room for pods that a gang waits for and that are no members: no edit of the job changes what they request.
func (s *search) ofHelper(helper *stage.Diagnosis) {
	if helper == nil || !slices.Contains(resizable, helper.Primary.Code) {
		return
	}
	s.base = helper
	if s.upon == nil {
		s.part(answer.Wait, waiter{s}.wait)
	}
	s.part(answer.Uncordon, nodeRepairer{s}.uncordon)
	s.part(answer.AddNodes, nodeAdder{s}.addNodes)
	s.part(answer.Evict, evictor{s}.evict)
}

// alternatives are for a gang that would start smaller or elsewhere, later, or when others make room.
func (s *search) alternatives() {
	crowded := !s.neverFits()
	if s.upon == nil && crowded { // after a step the action names what it waits for
		s.part(answer.Wait, func() {
			if !(evictor{s}).preempted(waiter{s}.wait) {
				waiter{s}.wait()
			}
			s.later(waiter{s}.wait, ", once the nodes that are coming are there")
		})
	}
	again := s.behind || overstated(s.base.Primary) // another size or rule would have those start again that run, or do what the right numbers do
	if !again {
		s.part(answer.Reshape, func() { again = s.startsAgain() })
		s.again = again
	}
	if !again {
		s.part(answer.Reshape, resizer{s}.reshape)
		s.part(answer.Trim, trimmer{s}.trim)
		s.part(answer.Fewer, func() {
			resizer{s}.fewer()
			resizer{s}.fewerNeeded()
		})
	}
	switch relaxed := (relaxer{s}); {
	case s.behind:
	case again: // with any rule
		s.part(answer.Relax, func() { relaxed.topology() })
	default:
		s.part(answer.Relax, relaxed.relax)
	}
	s.part(answer.Uncordon, nodeRepairer{s}.uncordon)
	s.part(answer.Fix, nodeRepairer{s}.repair)
	if crowded {
		s.part(answer.Move, mover{s}.move)
	}
	fits := slices.ContainsFunc(s.base.Findings(), func(f stage.Finding) bool { return f.Code == answer.FitsNotPlaced })
	if (!again || s.behind) && !fits { // it has room, and with more of that it is not placed either
		s.part(answer.AddNodes, func() {
			if !s.later(nodeAdder{s}.addNodes, ", besides those that are coming") {
				nodeAdder{s}.addNodes()
			}
		})
	}
	if crowded {
		s.part(answer.Evict, evictor{s}.evict)
	}
}

// neverFits reports whether it is proven that the gang has no place even when all pods are gone that may go: no end, move or eviction of others starts it then. Pods that members have to be
// with are not gone when others are.
func (s *search) neverFits() bool {
	ideal := s.base.Ideal
	return ideal != nil && ideal.Impossible() && !slices.ContainsFunc(s.base.Request.Roles, func(r placement.Role) bool { return placement.DependsOnPods(r.Pod) })
}

// Those that lose nothing come before those that do: what the user can do, or what happens by itself; then what removes the cause; then what the owner of
// a queue can, which is to give more; then what only the administrators of the cluster can, and of that last what takes room from others.
var (
	usersOrder  = []answer.ActionKind{answer.Fix, answer.Reshape, answer.Trim, answer.Relax, answer.Wait, answer.Fewer}
	othersOrder = []answer.ActionKind{answer.Fix, answer.Quota, answer.Uncordon, answer.Move, answer.AddNodes, answer.Evict}
)

func rank(a answer.Action) int {
	if a.Devices > 0 { // whichever way leaves more of them
		return slices.Index(usersOrder, answer.Fewer)
	}
	if a.By == answer.Admin {
		return len(usersOrder) + slices.Index(othersOrder, a.Kind)
	}
	return slices.Index(usersOrder, a.Kind)
}

// later searches in the cluster with the nodes that are on their way, if the findings count these; it reports whether they do. What is found ends in a condition,
// but for what was found without.
func (s *search) later(search func(), condition string) bool {
	if s.base.Coming == nil {
		return false
	}
	s.in(s.base.Coming, search, condition)
	return true
}

// in searches in another cluster, and reports whether something is found that was not before: that ends in a condition.
func (s *search) in(w *view.View, search func(), condition string) (found bool) {
	now, before, owned, gone := s.w, slices.Clone(s.actions), s.owned, s.ended
	s.w, s.actions, s.owned, s.ended = w, nil, nil, nil
	search()
	all := s.actions
	s.w, s.actions, s.owned, s.ended = now, before, owned, gone
	for _, a := range all {
		if !slices.ContainsFunc(before, func(known answer.Action) bool { return known.Kind == a.Kind && known.Text == a.Text }) {
			a.Text += condition
			s.actions, found = append(s.actions, a), true
		}
	}
	return found
}

// naming names consumers to the reader of the actions.
func (s *search) naming() stage.Naming { return stage.Naming{View: s.w, Reader: s.reader} }

// try evaluates all stages again in the cluster that apply makes.
func (s *search) try(apply func(*snapshot.Snapshot) *snapshot.Snapshot) (*stage.Diagnosis, bool) {
	a := s.attempt(apply)
	switch {
	case a == nil:
		return nil, false
	case a.r == nil: // the job is gone, which is what one that is being deleted waits for
		return &stage.Diagnosis{Gang: s.g, Verdict: answer.Done}, s.base.Primary.Code == answer.JobTerminating
	}
	return a.r, a.r.Starts()
}

// room reports whether a gang has a placement on a cluster, or none is known not to exist. That is quick, and true wherever
// a diagnosis would find that the gang starts: what it refuses needs no diagnosis.
func (s *search) room(cluster *placement.Cluster, gang placement.Gang) bool {
	return !s.spent() && !s.placed(cluster, gang).Impossible()
}

// cluster is the cluster without what keeps room for the gang's members.
func (s *search) cluster() *placement.Cluster { return s.w.Without(s.w.Placeholders(s.g)) }

// placed searches for a placement in what time is left.
func (s *search) placed(cluster *placement.Cluster, gang placement.Gang) *placement.Result {
	r := s.place(cluster, gang, s.left(s.usual))
	return &r
}

// same finds the job again.
func (s *search) same(w *view.View) *gang.Job {
	g := s.g
	if len(g.Bare) > 0 {
		job, err := w.Find(view.Query{Kind: "pod", Namespace: g.Bare[0].Namespace, Name: g.Bare[0].Name})
		if err != nil {
			return nil
		}
		return job
	}
	if g.Object != nil && slices.Contains(w.Snap.Custom[g.Kind.GroupKind()], g.Object) {
		return g.Job // it is as it was, and need not be looked for among all others
	}
	return w.Lookup(g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name)
}

// offer adds an action if the gang starts after it.
func (s *search) offer(fix stage.Fix) bool {
	if s.upon != nil && s.upon.merges(fix) {
		return s.offerMerged(fix)
	}
	r, ok := s.try(fix.Apply)
	if ok {
		s.add(fix, Placement(r))
	}
	return ok
}

// add adds what was found to work, and where the members are then. Where the search goes on from another one, that has it with the step before.
func (s *search) add(fix stage.Fix, placed []answer.Placed) {
	if s.upon != nil {
		s.found(fix)
		s.upon.take(fix, placed)
		return
	}
	a := s.restated(fix).Action
	a.Verified, a.Placement = true, placed
	if !command.Within(a.Command, s.reader.Sees) {
		a.Command, a.Resize = "", ""
	}
	if s.assumes(a.Command) {
		a.Command, a.Resize, a.How = "", "", s.like(a.Resize)
	}
	a.How = described(a)
	if slices.ContainsFunc(s.actions, func(has answer.Action) bool {
		return has.Kind == a.Kind && has.By == a.By && (has.Text == a.Text || len(a.Change) > 0 && equality.Semantic.DeepEqual(has.Change, a.Change))
	}) {
		return // two findings know the same way out, or a search has found what one knows
	}
	s.actions = append(s.actions, a)
}

// noCommand begins how users do what no command does.
const noCommand = "no command does that"

// described is how an action is done, where no command does it.
func described(a answer.Action) string {
	if a.Command == "" && a.Resize == "" && a.How == "" && a.By != answer.Nobody {
		return map[answer.Who]string{answer.User: noCommand + ": change it where the job is made", answer.Admin: "ask those who run the cluster"}[a.By]
	}
	return a.How
}

// Placement names the members of a result's placement.
func Placement(r *stage.Diagnosis) []answer.Placed {
	if r.Placement == nil || !r.Placement.Fits() {
		return nil
	}
	var placed []answer.Placed
	for _, a := range r.Placement.Placement {
		placed = append(placed, answer.Placed{Member: r.Request.Member(a.Role, a.Member).Name(), Node: a.Node})
	}
	slices.SortFunc(placed, func(a, b answer.Placed) int { return cmp.Compare(a.Member, b.Member) })
	return placed
}

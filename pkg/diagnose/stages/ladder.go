// Package stages climbs from the request of a gang to its running members, one stage after the other, and writes down
// everything that stands in the way. Every stage is looked at, whatever the earlier ones found. It is pure.
package stages

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Finding is a reason, with the ways to remove it.
type Finding struct {
	answer.Finding
	// Fixes remove exactly this finding. Whether the gang starts then is for others to find out.
	Fixes []Fix
}

// Fix is an action and what the cluster is like after it.
type Fix struct {
	answer.Action
	Apply func(*snapshot.Snapshot) *snapshot.Snapshot
}

// Options bound the work.
type Options struct {
	// Budget is the time for one search for a placement; 0 is the default.
	Budget time.Duration
	// depth counts climbs on behalf of other gangs.
	depth int
}

// Result is what a climb found.
type Result struct {
	Gang  *gang.Gang
	Party view.Party
	// Verdict, Who and Never follow from the primary finding, or from the absence of one.
	Verdict answer.Verdict
	Who     answer.Who
	Never   bool
	// Primary is the earliest finding that definitely blocks; nil if the gang runs or is done.
	Primary *Finding
	// Others are the remaining findings in order.
	Others []Finding
	Stages []answer.StageState
	// Place is the result of the placement search; nil where there was none.
	Place *placement.Result
	// Ideal is that on the cluster at its best; nil where nothing had to be asked.
	Ideal *placement.Result
	// Matrices are the constraints of every node, by simulated role.
	Matrices map[string]placement.Matrix
	// Ahead are gangs that come first.
	Ahead []answer.Ahead
	// Unmodelled is what the gang asks for that no stage evaluates.
	Unmodelled []string
	// Notes are remarks that block nothing.
	Notes []string
	// Missing are rights that the climb would have needed, in the order in which it did.
	Missing []answer.Right
}

// Starts reports whether the gang starts without anybody's help and without waiting for something else to end.
func (r *Result) Starts() bool { return r.Verdict.Starts() }

// Findings are the primary finding and the others.
func (r *Result) Findings() []Finding {
	if r.Primary == nil {
		return r.Others
	}
	return append([]Finding{*r.Primary}, r.Others...)
}

// climb is one run.
type climb struct {
	w *view.View
	g *gang.Gang
	*Result

	// search looks for a placement of a gang, held to all but some constraints.
	search func(*placement.Cluster, placement.Gang, placement.Constraints) placement.Result
	// why climbs for another gang; nil if this climb itself is for one that is too far from the gang that was asked about.
	why func(*gang.Job) *Result

	findings []Finding
	// unseen are constraints that a placement cannot be held to, for lack of rights.
	unseen placement.Constraints
	// at is the stage that is being looked at.
	at answer.Stage
	// held is true once a stage found why there are no pods: their absence needs no further reason.
	held bool
}

// climbed is a gang that was climbed for on behalf of another.
type climbed struct {
	job   *gang.Job
	depth int
}

// stage is one rung.
type stage struct {
	name answer.Stage
	look func(*climb) state
}

// state is what a stage says of itself when it adds no finding.
type state struct{ word, note string }

var (
	ok      = state{word: answer.StateOK}
	skipped = state{word: answer.StateSkipped}
)

func okf(note string) state      { return state{answer.StateOK, note} }
func unknown(note string) state  { return state{answer.StateUnknown, note} }
func skippedf(note string) state { return state{answer.StateSkipped, note} }

// rungs are the stages in their order, which is the precedence of findings.
func rungs() []stage {
	return []stage{
		{answer.StageRequest, (*climb).request},
		{answer.StageJob, (*climb).job},
		{answer.StageController, (*climb).controller},
		{answer.StagePods, (*climb).pods},
		{answer.StageGang, (*climb).group},
		{answer.StageQueue, (*climb).queue},
		{answer.StageScheduler, (*climb).scheduler},
		{answer.StagePlacement, (*climb).placement},
		{answer.StageOrder, (*climb).order},
		{answer.StageStart, (*climb).start},
		{answer.StageLife, (*climb).life},
	}
}

// Climb looks at every stage of a job's way.
func Climb(ctx context.Context, w *view.View, s *gang.Job, opts Options) *Result {
	g := w.Gang(s)
	c := &climb{w: w, g: g, Result: &Result{Gang: g, Matrices: map[string]placement.Matrix{}}}
	c.search = func(cluster *placement.Cluster, gang placement.Gang, ignore placement.Constraints) placement.Result {
		return placement.Place(ctx, cluster, gang, placement.Options{Budget: opts.Budget, Ignore: c.unseen.Union(ignore)})
	}
	if opts.depth < maxDepth {
		deeper := opts
		deeper.depth++
		c.why = func(other *gang.Job) *Result {
			return view.Once(w, climbed{other, deeper.depth}, func() *Result { return Climb(ctx, w, other, deeper) })
		}
	}
	if s.End != nil && !s.End.Failed {
		c.Verdict, c.Who = answer.Done, answer.Nobody
		return c.Result
	}
	if g.Min > 0 && g.Count(gang.Running, gang.Succeeded) >= g.Min && s.End == nil {
		c.Verdict, c.Who = answer.Running, answer.Nobody
		c.running()
		return c.Result
	}
	c.adoptScheduler()
	c.Party = w.Party(g)
	stages := rungs()
	if c.blind() {
		stages = stages[:2] // the namespace and the job can still be looked at
	}
	for _, st := range stages {
		before := len(c.findings)
		c.at = st.name
		s := st.look(c)
		found := c.findings[before:]
		if len(found) > 0 {
			s.word = answer.StateWaiting
			if slices.ContainsFunc(found, func(f Finding) bool {
				return f.Verdict != answer.Waiting && f.Verdict != answer.Starting && f.Verdict != answer.FitsNow
			}) {
				s.word = answer.StateBlocked
			}
			if slices.ContainsFunc(found, func(f Finding) bool { return f.Verdict == answer.Uncertain }) {
				s.word = answer.StateUnknown
			}
		}
		c.Stages = append(c.Stages, answer.StageState{Name: st.name, State: s.word, Note: s.note})
	}
	c.conclude()
	return c.Result
}

// adoptScheduler: pods that do not exist yet, of a template that names no scheduler, will get the one that the operator is
// told to give them.
func (c *climb) adoptScheduler() {
	if c.g.Count(gang.Missing) < c.g.Total() {
		return
	}
	for _, r := range c.g.Roles {
		if r.Template.Spec.SchedulerName != "" {
			return
		}
	}
	if name := c.gangSchedulerFlag(); name != "" {
		c.g.Scheduler = name
	}
}

// add writes down a finding. Its sentence may end in the words of others, with their full stop.
func (c *climb) add(f Finding) {
	f.Message = line("%s", f.Message)
	if !strings.HasSuffix(f.Message, "..") {
		f.Message = strings.TrimSuffix(f.Message, ".")
	}
	c.findings = append(c.findings, f)
}

// has reports whether one of the codes was found already.
func (c *climb) has(codes ...answer.Code) bool {
	return slices.ContainsFunc(c.findings, func(f Finding) bool { return slices.Contains(codes, f.Code) })
}

// rank orders verdicts: what needs somebody comes before what passes by itself, and that before what is not known.
func rank(v answer.Verdict) int {
	switch v {
	case answer.Failed:
		return 0
	case answer.Degraded:
		return 1
	case answer.Blocked:
		return 2
	case answer.Waiting, answer.Starting:
		return 3
	case answer.Uncertain:
		return 4
	default: // fits
		return 5
	}
}

// conclude picks the primary finding: the earliest of the most definite kind.
func (c *climb) conclude() {
	best := -1
	for i, f := range c.findings {
		if best < 0 || rank(f.Verdict) < rank(c.findings[best].Verdict) {
			best = i
		}
	}
	if best < 0 {
		c.Verdict, c.Who = answer.Running, answer.Nobody
		return
	}
	primary := c.findings[best]
	c.Primary = &primary
	c.Verdict, c.Who, c.Never = primary.Verdict, primary.Who, primary.Never
	for i, f := range c.findings {
		if i != best && f.Verdict != answer.FitsNow {
			c.Others = append(c.Others, f)
		}
	}
	c.decide()
}

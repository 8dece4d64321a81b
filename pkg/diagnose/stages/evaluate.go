// Package stages diagnoses a gang: it evaluates every stage from the request to the running members, whatever the earlier ones
// found, and picks the finding that counts. It is pure.
package stages

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/controller"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/job"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/life"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/order"
	place "github.com/gangctl/gangctl/pkg/diagnose/stages/placement"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/podgroup"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/pods"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/queue"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/request"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/scheduler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/start"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Options bound the work.
type Options struct {
	// Budget is the time for one search for a placement, for that of the causes why there is none, and for the count of devices; 0 is the default of each.
	Budget time.Duration
	// Reader is whom the findings are written for.
	Reader audience.Reader
	// depth counts diagnoses on behalf of other gangs.
	depth int
}

// causesBudget is the time for all searches for the causes why a gang does not fit. Without them the answer names what the role that is hardest to place
// does not find.
const causesBudget = 300 * time.Millisecond

// devicesBudget is the time in which devices are counted: tenants write the selectors that each of them is held to.
const devicesBudget = 100 * time.Millisecond

// maxDepth is how many gangs deep others are diagnosed to explain one.
const maxDepth = 2

// evaluator is one stage.
type evaluator struct {
	name     answer.Stage
	evaluate func(*stage.Context, *stage.Result) stage.State
}

func (e evaluator) result(c *stage.Context) (r stage.Result) {
	r.State = e.evaluate(c, &r)
	return r
}

// ofMembers is the result of a stage for a gang: what several roles have in their way is one finding.
func (e evaluator) ofMembers(c *stage.Context) stage.Result {
	r := e.result(c)
	r.Findings = united(c.Gang, r.Findings)
	overheads(c, r.Findings)
	outdated(c, r.Findings)
	otherImage(c, r.Findings)
	return r
}

// evaluators are the stages in their order, which is the precedence of findings.
func evaluators() []evaluator {
	return []evaluator{
		{answer.StageRequest, request.Evaluate},
		{answer.StageJob, job.Evaluate},
		{answer.StageController, controller.Evaluate},
		{answer.StagePods, pods.Evaluate},
		{answer.StagePodGroup, podgroup.Evaluate},
		{answer.StageQueue, queue.Evaluate},
		{answer.StageScheduler, scheduler.Evaluate},
		{answer.StagePlacement, place.Evaluate},
		{answer.StageOrder, order.Evaluate},
		{answer.StageStart, start.Evaluate},
		{answer.StageLife, life.Evaluate},
	}
}

// admission are the stages up to the queue that are not about the pods of a gang, nor about what makes them: those of a gang that runs in another cluster.
func admission(all []evaluator) []evaluator {
	return slices.DeleteFunc(all, func(e evaluator) bool {
		return e.name != answer.StageRequest && e.name != answer.StageJob && e.name != answer.StageQueue
	})
}

// Evaluate diagnoses the gang of a job, stage by stage; of a job of several the first that does not run.
func Evaluate(ctx context.Context, v *view.View, j *gang.Job, opts Options) *stage.Diagnosis {
	g := v.Gang(j)
	if i := slices.IndexFunc(g.Each, func(one *gang.Gang) bool { return !one.Up() }); i >= 0 {
		g, j = g.Each[i], g.Each[i].Job
	}
	d := &stage.Diagnosis{Who: answer.Nobody}
	if shared := v.SharedGang(g); shared != nil && j.End == nil {
		d.Of, g, j = j, shared, shared.Job
	}
	d.Gang = g
	switch {
	case j.End != nil && !j.End.Failed:
		d.Verdict = answer.Done
		return d
	case g.Up() && j.End == nil:
		if r, helper := helpers(ctx, v, g, opts); len(r.Findings) > 0 {
			d.Helper = helper
			c := stage.NewContext(v, g, opts.Reader, tools(ctx, opts), nil)
			conclude(d, record(d, c, answer.StagePods, r).Findings)
			return d
		}
		d.Verdict, d.Notes = answer.Running, runningNotes(ctx, v, g, opts)
		if d.Behind = behind(ctx, v, g, opts); d.Behind != nil {
			d.Others, d.Unmodelled = d.Behind.Findings(), d.Behind.Unmodelled
		}
		return d
	}
	d.Gang = withScheduler(v, g)
	c := stage.NewContext(v, d.Gang, opts.Reader, tools(ctx, opts), diagnoser(ctx, v, opts))
	all := evaluators()
	if queueing.Elsewhere(v, d.Gang) {
		all = admission(all)
	}
	if r := podsUnreadable(c); len(r.Findings) > 0 {
		c = record(d, c, answer.StagePods, r)
		all = all[:2] // the namespace and the job can still be evaluated
	}
	var others stage.Result
	for _, e := range all {
		if e.name == answer.StagePods && !d.Gang.Suspended {
			others, d.Helper = helpers(ctx, v, d.Gang, opts)
			c = record(d, c, e.name, others)
		}
		r := e.ofMembers(c)
		runtimeRules(c, r)
		d.Stages = append(d.Stages, summary(e.name, r, others))
		c = record(d, c, e.name, r)
		if r.Last {
			break
		}
	}
	finish(d, c, c.Findings)
	if d.Primary != nil && j.End == nil {
		deadline(c, d.Primary)
	}
	return d
}

// finish takes over what the last stage knows, and concludes from some findings.
func finish(d *stage.Diagnosis, c *stage.Context, findings []stage.Finding) {
	d.Request, d.Placement, d.Matrices, d.Missing = c.Request, c.Placement, c.Matrices, c.Missing
	d.Cut, d.Stalled = c.Cut(), c.Stalled
	conclude(d, findings)
}

// deadline adds when a job that does not run yet is ended for its activeDeadlineSeconds, which count from its start.
func deadline(c *stage.Context, f *stage.Finding) {
	job := c.Gang.Job
	end := job.Started.Add(job.Deadline)
	if job.Deadline <= 0 || job.Started.IsZero() || job.Suspended || !end.After(c.View.Now) {
		return
	}
	f.Detail("it fails at %s, in %s, if it has not completed by then: its activeDeadlineSeconds (%s) count from its start, also while it waits", phrase.Clock(end, c.View.Now), phrase.Age(end.Sub(c.View.Now)), phrase.Age(job.Deadline)).
		Fact("deadline", end.UTC().Format(time.RFC3339))
}

// summary is the state of a stage, in which those that help the gang may be held up, too.
func summary(name answer.Stage, r, others stage.Result) answer.StageState {
	of := slices.DeleteFunc(slices.Clone(others.Findings), func(f stage.Finding) bool { return f.Stage != name })
	if r.Findings = slices.Concat(of, r.Findings); len(of) > 0 {
		r.State.Note = "" // which is about the members
	}
	return r.Summary(name)
}

// tools compute until ctx ends.
func tools(ctx context.Context, opts Options) stage.Tools {
	return stage.Tools{
		Search: func(cluster *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Result {
			return placement.Place(ctx, cluster, g, placement.Options{Budget: opts.Budget, Ignore: ignore})
		},
		Causes: func(cluster *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Causes {
			return placement.FindCauses(ctx, cluster, g, placement.Options{Budget: cmp.Or(opts.Budget, causesBudget), Ignore: ignore})
		},
		Matrix: func(cluster *placement.Cluster, pod *corev1.Pod) placement.Matrix {
			return cluster.MatrixWithin(ctx, pod)
		},
		Lacking: func(cluster *placement.Cluster, g placement.Gang, found placement.Result) placement.Room {
			return cluster.Lacking(ctx, g, found)
		},
		MainRoom: func(cluster *placement.Cluster, g placement.Gang, role placement.Role) placement.Room {
			return cluster.RoomFor(ctx, g, role)
		},
		CauseRoom: func(cluster *placement.Cluster, g placement.Gang, causes placement.Causes, cause placement.Cause) (placement.Room, bool) {
			return causes.Room(ctx, cluster, g, cause)
		},
		Devices: func(cluster *placement.Cluster, roles []placement.Role) []placement.DeviceCount {
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(opts.Budget, devicesBudget))
			defer cancel()
			return cluster.DeviceCounts(ctx, roles)
		},
		Domains: func(cluster *placement.Cluster, g placement.Gang, key string) []placement.DomainRoom {
			return cluster.Domains(ctx, g, key, placement.Options{Budget: opts.Budget})
		},
	}
}

// diagnosed is the key of a diagnosis on behalf of another gang.
type diagnosed struct {
	job    *gang.Job
	reader audience.Reader
	depth  int
}

// diagnoser diagnoses other gangs on behalf of one, each once for a view; nil where that went deep enough.
func diagnoser(ctx context.Context, v *view.View, opts Options) func(*gang.Job) *stage.Diagnosis {
	if opts.depth >= maxDepth {
		return nil
	}
	opts.depth++
	return func(other *gang.Job) *stage.Diagnosis {
		return view.Once(v, diagnosed{other, opts.Reader, opts.depth}, func() *stage.Diagnosis { return Evaluate(ctx, v, other, opts) })
	}
}

// record adds the result of a stage to a diagnosis, and returns the context of the next stage. A right counts for the first stage
// that would have needed it.
func record(d *stage.Diagnosis, c *stage.Context, name answer.Stage, r stage.Result) *stage.Context {
	var missing []answer.Right
	for _, right := range r.Missing {
		if !slices.ContainsFunc(c.Missing, func(m answer.Right) bool { return m.String() == right.String() }) {
			right.Stage, right.Lost = name, stage.Lost(right, name)
			missing = append(missing, right)
		}
	}
	r.Missing = missing
	if r.Ideal != nil {
		d.Ideal = r.Ideal
	}
	if r.Coming != nil {
		d.Coming = r.Coming
	}
	d.Ahead = append(d.Ahead, r.Ahead...)
	d.Notes = append(d.Notes, r.Notes...)
	d.Unmodelled = append(d.Unmodelled, r.Unmodelled...)
	return c.With(r)
}

// withScheduler is the gang with the scheduler that it will have: pods that do not exist yet, of a template that names no
// scheduler, get the one that the flags of the operator name.
func withScheduler(v *view.View, g *gang.Gang) *gang.Gang {
	if g.Count(gang.Missing) < g.Total() || slices.ContainsFunc(g.Roles, func(r gang.Role) bool { return r.Template.Spec.SchedulerName != "" }) {
		return g
	}
	name := component.OperatorScheduler(v, g)
	if name == "" {
		return g
	}
	adopted := *g
	adopted.Scheduler = name
	return &adopted
}

// podsUnreadable finds that the gang's own pods may not be listed: nothing that is reported of members holds then.
func podsUnreadable(c *stage.Context) stage.Result {
	var r stage.Result
	if r.Denied(c, "pods", c.Gang.Meta.Namespace) {
		missing := stage.RightNames(r.Missing)
		r.Add(stage.Found(answer.NoPermission, "how %s is cannot be determined: you may not %s", c.Gang.Meta.Name, phrase.And(missing)).At(answer.StagePods).
			Fact("missing", missing).Run(command.Kubectl(c.Gang.Meta.Namespace, "auth", "can-i", "list", "pods")))
	}
	return r
}

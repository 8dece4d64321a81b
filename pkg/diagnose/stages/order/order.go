// Package order is the stage of a diagnosis that evaluates who comes first in a queue.
package order

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// Evaluate finds out which gangs come first, and finds that the gang fits if nothing is in its way.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	if c.Placement == nil && slices.ContainsFunc(c.Missing, func(r answer.Right) bool { return r.Stage == answer.StagePlacement }) {
		return stage.Skipped("without a placement there is no order")
	}
	before := len(out.Findings)
	queueOrder(c, out)
	promised(c, out)
	if len(c.Findings)+len(out.Findings) == 0 && made(c) && c.Placement != nil && c.Placement.Fits() && c.Gang.Count(gang.Failed, gang.Lost) == 0 && !leftBehind(c) {
		if f := reserved(c); f != nil {
			out.Add(f)
			return stage.OK("")
		}
		if f := permitted(c); f != nil {
			out.Add(f)
			return stage.OK("")
		}
		if overused(c, out) {
			return stage.OK("")
		}
		out.Add(fits(c))
		return stage.OK("no job ahead")
	}
	if len(out.Findings) > before {
		return stage.OK("")
	}
	for _, f := range c.Findings {
		if first, kept := f.Facts["keptFor"].(string); kept {
			return stage.OK(first + " comes first")
		}
	}
	return stage.OK("no job ahead")
}

// made reports whether members are made as soon as they may be: nothing else of the job has to come first. What is only assumed to be there, and what a queue
// manager suspends, is judged by whether there is room.
func made(c *stage.Context) bool {
	return c.Gang.Before == "" || c.Gang.Count(gang.Missing) < c.Gang.Total() || c.View.Assumed || c.Gang.Suspended
}

// leftBehind reports whether a pod of the gang should have gone long ago: before it has there is no other that could be placed.
func leftBehind(c *stage.Context) bool {
	return slices.ContainsFunc(c.Gang.ExistingPods(), c.View.Stuck)
}

// queueOrder finds that in a strictly ordered queue an older gang keeps the younger ones waiting, if it cannot start, or if it takes
// the room if it does.
func queueOrder(c *stage.Context, out *stage.Result) {
	queue := ahead(c)
	mine := queue.mine
	left := leftFor(c)
	for _, r := range queue.rivals {
		if c.Diagnose == nil {
			return
		}
		if r.Job == nil {
			if !out.Has(answer.QueueOrder) && !(left.spend(queueing.PodSetsOf(c.View, r.Workload)) && left.quotaFor(c)) {
				out.Add(behindWorkload(c, queue.name, r, mine))
			}
			continue
		}
		why := c.Diagnose(r.Job)
		if why.Verdict == answer.Failed {
			continue
		}
		if why.Starts() || queue.byQuota && !heldByQueue(why) {
			left.spend(queueing.PodSets(c.View, why.Gang))
			left.place(c, why)
			if left.quotaFor(c) && (!why.Starts() || c.Fit(left.nodes, nil).Fits()) {
				continue
			}
		}
		needs := whatif.Needs(r.Job.Roles, r.Job.Total())
		out.Ahead = append(out.Ahead, stage.Ahead{Rival: r.Job, Ahead: answer.Ahead{Job: rival(c, r, needs), Reason: reason(r, mine), Needs: needs}})
		if !out.Has(answer.QueueOrder) {
			out.Add(behind(c, queue.name, r, mine, why))
		}
	}
}

// heldByQueue reports whether a gang does not leave its queue: it is short of quota there, or behind another one.
func heldByQueue(why *stage.Diagnosis) bool {
	return slices.ContainsFunc(why.Findings(), func(f stage.Finding) bool {
		return f.Stage == answer.StageQueue || f.Code == answer.QueueOrder
	})
}

// The reasons for which a gang comes first.
const (
	byPriority   = "priority"
	byAge        = "fifo"
	byNomination = "nomination"
)

// reason is why a rival comes before a gang: priority before age.
func reason(r, mine queueing.Entry) string {
	if r.Priority > mine.Priority {
		return byPriority
	}
	return byAge
}

// leftover is what the gangs that start first leave: of the nodes, and of the quota of their queue; nil of that for a gang that has none.
type leftover struct {
	nodes *placement.Cluster
	quota *cohort.Availability
}

func leftFor(c *stage.Context) *leftover {
	left := &leftover{nodes: c.Cluster()}
	wl := c.View.Workload(c.Gang.Job)
	if wl == nil {
		return left
	}
	if queue := queueing.Object(c.View, "ClusterQueue", "", queueing.ClusterQueue(c.View, wl)); queue != nil {
		left.quota = queueing.QuotaTreeFor(c.View, wl).Available(queue.GetName())
	}
	return left
}

// spend takes the quota that some pod sets need; false if there is not enough.
func (l *leftover) spend(sets []cohort.PodSet) bool {
	if l.quota == nil {
		return true
	}
	_, short := l.quota.Assign(sets...)
	return short == nil
}

// place takes the room of a gang, if it starts.
func (l *leftover) place(c *stage.Context, why *stage.Diagnosis) {
	if why.Placement != nil && why.Starts() {
		l.put(c, why)
	}
}

// put takes the room of the members of a gang that find a place, whether it starts or not.
func (l *leftover) put(c *stage.Context, why *stage.Diagnosis) {
	var pods []*corev1.Pod
	for _, a := range why.Placement.Placement {
		pod := c.View.Virtual(why.Gang, why.Request.Member(a.Role, a.Member))
		pod.Spec.NodeName = a.Node
		pods = append(pods, pod)
	}
	l.nodes = l.nodes.With(pods...)
}

// quotaFor reports whether there is quota left for the gang.
func (l *leftover) quotaFor(c *stage.Context) bool {
	if l.quota == nil {
		return true
	}
	_, short := l.quota.Clone().Assign(queueing.PodSets(c.View, c.Gang)...)
	return short == nil
}

// rival names a gang that comes first.
func rival(c *stage.Context, r queueing.Entry, needs corev1.ResourceList) string {
	return c.Reader.Name(audience.New(r.Job.Kind.Kind, r.Job.Meta.Namespace, r.Job.Meta.Name).Sized(needs, int32(r.Priority)))
}

func behind(c *stage.Context, queue string, r, mine queueing.Entry, why *stage.Diagnosis) *stage.Finding {
	needs := whatif.Needs(r.Job.Roles, r.Job.Total())
	name := rival(c, r, needs)
	fits := "it is not known to fit"
	if c.Placement != nil && c.Placement.Fits() {
		fits = "it fits, with room for all members now"
	}
	first, rule := firstBy(r, mine)
	if size := phrase.Size(needs); size != "" {
		first += ", needs " + size
	}
	f := stage.Found(answer.QueueOrder, "%s, but %s is ahead (%s) in queue %s, which is %s", fits, name, first, queue, rule).
		Fact("queue", queue).Fact("ahead", name).Fact("reason", reason(r, mine)).SinceTime(r.Since)
	bare := "it"
	if c.Reader.Sees(r.Job.Meta.Namespace) {
		bare = r.Job.Meta.Name
	}
	if why.Starts() {
		f.Detail("%s starts first, and takes the room", bare)
	} else if why.Primary != nil {
		text, details := c.WhyOther(why)
		f.Detail("why %s waits: %s", bare, text)
		for _, line := range details {
			f.Detail("  %s", line)
		}
	}
	if stage.NeverStarts(why) {
		f.Message += "; " + bare + " can never start as it is"
		f.Detail("%s can never start as it is, and keeps those behind it waiting until it is changed or deleted", bare).Fact("neverStarts", name).Fix(c.Drop(r.Job, name))
	}
	return f
}

// firstBy is by what a rival comes first, and the rule of the queue.
func firstBy(r, mine queueing.Entry) (first, rule string) {
	if reason(r, mine) == byPriority {
		return fmt.Sprintf("priority %d above %d", r.Priority, mine.Priority), "strictly ordered, by priority and then by age"
	}
	return "older", "strictly first in, first out"
}

// behindWorkload is the finding that a Workload of a kind that is not known here is ahead: nothing but its share of the queue is.
func behindWorkload(c *stage.Context, queue string, r, mine queueing.Entry) *stage.Finding {
	thing := queueing.JobName(c.View, r.Workload)
	first, rule := firstBy(r, mine)
	return stage.Found(answer.QueueOrder, "%s is ahead (%s) in queue %s, which is %s, and there is not enough quota for both", c.Reader.Title(thing), first, queue, rule).
		See(r.Workload.GetAPIVersion(), "Workload", r.Workload, ".spec").Fact("queue", queue).Fact("ahead", c.Reader.Name(thing)).Fact("reason", reason(r, mine)).SinceTime(r.Since)
}

// line is the waiting gangs before this one in a queue, in order, and where this one stands in it; none if the queue is not strict.
type line struct {
	name   string
	rivals []queueing.Entry
	mine   queueing.Entry
	// byQuota is true for a queue that a gang leaves as soon as there is quota for it, whether it finds nodes or not.
	byQuota bool
}

func ahead(c *stage.Context) line {
	if wl := c.View.Workload(c.Gang.Job); wl != nil && cohort.AdmittedTo(wl) == "" {
		return kueueAhead(c, wl)
	}
	kind, name, ok := queueing.Queue(c.View, c.Gang)
	if !ok || kind != volcano.QueueKind() || c.Gang.Decl == nil {
		return line{}
	}
	for _, q := range c.View.Snap.Custom[kind] {
		f := gang.Fields{Object: q}
		if q.GetName() == name && f.String("spec", "dequeueStrategy") == "fifo" {
			return volcanoAhead(c, name)
		}
	}
	return line{}
}

func volcanoAhead(c *stage.Context, queue string) line {
	mine := queueing.Entry{Priority: int64(queueing.PriorityOf(c.View, c.Gang.Decl.PriorityClass)), Since: c.Gang.Decl.Created}
	var all []queueing.Entry
	for _, d := range c.View.Groups() {
		if d.Key.Dialect != gang.Volcano || d.Queue != queue || d.Key == c.Gang.Decl.Key {
			continue
		}
		job := c.View.JobOfGroup(d)
		if job == nil || !pending(c, job) {
			continue
		}
		all = append(all, queueing.Entry{Job: job, Priority: int64(queueing.PriorityOf(c.View, d.PriorityClass)), Since: d.Created})
	}
	return line{name: queue, rivals: queueing.Ahead(all, mine), mine: mine}
}

// pending reports whether a gang of a job still waits for its members to get nodes.
func pending(c *stage.Context, s *gang.Job) bool {
	return s.End == nil && slices.ContainsFunc(c.View.Gangs(s), func(g *gang.Gang) bool {
		return g.Min > 0 && !g.Placed()
	})
}

// kueueAhead is the line of a Workload. One that is set aside is in none, nor are others in it, as long as it is.
func kueueAhead(c *stage.Context, wl *unstructured.Unstructured) line {
	queue := queueing.ClusterQueue(c.View, wl)
	q := queueing.Object(c.View, "ClusterQueue", "", queue)
	if q == nil {
		return line{}
	}
	if !queueing.Strict(q) {
		return line{}
	}
	all, mine := queueing.Waiting(c.View, queue, wl)
	return line{queue, queueing.Ahead(all, mine), mine, true}
}

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
)

// Evaluate finds out which gangs come first, and finds that the gang fits if nothing is in its way.
func Evaluate(c *stage.Context) stage.Result {
	var r stage.Result
	r.State = evaluate(c, &r)
	return r
}

func evaluate(c *stage.Context, out *stage.Result) stage.State {
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
		if overused(c, out) {
			return stage.OK("")
		}
		out.Add(fits(c))
		return stage.OK("no job ahead")
	}
	if len(out.Findings) > before {
		return stage.OK("")
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
	queue, rivals, mine := ahead(c)
	var first []*stage.Diagnosis
	for _, r := range rivals {
		if c.Diagnose == nil {
			return
		}
		why := c.Diagnose(r.Job)
		if why.Verdict == answer.Failed {
			continue
		}
		if why.Starts() {
			if first = append(first, why); fitsAfter(c, first) {
				continue
			}
		}
		needs := whatif.Needs(r.Job.Roles, r.Job.Total())
		out.Ahead = append(out.Ahead, stage.Ahead{Rival: r.Job, Ahead: answer.Ahead{Job: rival(c, r, needs), Reason: reason(r, mine), Needs: needs}})
		if !out.Has(answer.QueueOrder) {
			out.Add(behind(c, queue, r, mine, why))
		}
	}
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

// fitsAfter reports whether the gang still fits, on nodes and in its queue, when others have started before it.
func fitsAfter(c *stage.Context, first []*stage.Diagnosis) bool {
	cluster := c.Cluster()
	for _, r := range first {
		if r.Placement == nil {
			continue
		}
		for _, a := range r.Placement.Placement {
			pod := c.View.Virtual(r.Gang, r.Request.Member(a.Role, a.Member))
			pod.Spec.NodeName = a.Node
			cluster = cluster.With(pod)
		}
	}
	if !c.Fit(cluster, nil).Fits() {
		return false
	}
	wl := queueing.Workload(c.View, c.Gang)
	if wl == nil {
		return true
	}
	queue := queueing.Object(c.View, "ClusterQueue", "", queueing.ClusterQueue(c.View, c.Gang, wl))
	if queue == nil {
		return true
	}
	available := queueing.QuotaTree(c.View).Available(queue.GetName())
	for _, r := range first {
		available.Assign(queueing.PodSets(c.View, r.Gang)...)
	}
	_, short := available.Assign(queueing.PodSets(c.View, c.Gang)...)
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
	first, rule := "older", "strictly first in, first out"
	if reason(r, mine) == byPriority {
		first, rule = fmt.Sprintf("priority %d above %d", r.Priority, mine.Priority), "strictly ordered, by priority and then by age"
	}
	if size := phrase.Size(needs); size != "" {
		first += ", needs " + size
	}
	f := stage.Found(answer.QueueOrder, "%s, but %s is ahead (%s) in queue %s, which is %s", fits, name, first, queue, rule).
		Fact("queue", queue).Fact("ahead", name).Fact("reason", reason(r, mine)).SinceTime(r.Created)
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
	return f
}

// ahead are the waiting gangs before this one, in order, if the queue is strict; the queue's name, and where this one stands in it.
func ahead(c *stage.Context) (name string, rivals []queueing.Entry, mine queueing.Entry) {
	if wl := queueing.Workload(c.View, c.Gang); wl != nil && !queueing.Admitted(wl) {
		return kueueAhead(c, wl)
	}
	kind, name, ok := queueing.Queue(c.View, c.Gang)
	if !ok || kind != volcano.QueueKind() || c.Gang.Decl == nil {
		return "", nil, mine
	}
	for _, q := range c.View.Snap.Custom[kind] {
		f := gang.Fields{Object: q}
		if q.GetName() == name && f.String("spec", "dequeueStrategy") == "fifo" {
			rivals, mine = volcanoAhead(c, name)
			return name, rivals, mine
		}
	}
	return "", nil, mine
}

func volcanoAhead(c *stage.Context, queue string) (rivals []queueing.Entry, mine queueing.Entry) {
	mine = queueing.Entry{Priority: int64(queueing.PriorityOf(c.View, c.Gang.Decl.PriorityClass)), Created: c.Gang.Decl.Created}
	var all []queueing.Entry
	for _, d := range c.View.Groups() {
		job := c.View.JobOfGroup(d)
		if d.Key.Dialect != gang.Volcano || d.Queue != queue || d.Key == c.Gang.Decl.Key || job == nil || !pending(c, job) {
			continue
		}
		all = append(all, queueing.Entry{Job: job, Priority: int64(queueing.PriorityOf(c.View, d.PriorityClass)), Created: d.Created})
	}
	return queueing.Ahead(all, mine), mine
}

// pending reports whether a gang of a job still waits for its members to get nodes.
func pending(c *stage.Context, s *gang.Job) bool {
	return s.End == nil && slices.ContainsFunc(c.View.Gangs(s), func(g *gang.Gang) bool {
		return g.Min > 0 && !g.Placed()
	})
}

func kueueAhead(c *stage.Context, wl *unstructured.Unstructured) (name string, rivals []queueing.Entry, mine queueing.Entry) {
	queue := queueing.ClusterQueue(c.View, c.Gang, wl)
	q := queueing.Object(c.View, "ClusterQueue", "", queue)
	if q == nil {
		return "", nil, mine
	}
	f := gang.Fields{Object: q}
	if f.String("spec", "queueingStrategy") != "StrictFIFO" {
		return "", nil, mine
	}
	all, mine := queueing.Waiting(c.View, c.Gang, queue, wl)
	return queue, queueing.Ahead(all, mine), mine
}

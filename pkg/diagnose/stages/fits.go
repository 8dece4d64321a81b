package stages

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// notPlacedAfter is how long a gang may fit, and its scheduler not try, before that is strange.
const notPlacedAfter = 5 * time.Minute

// fits: nothing stands in the way. Whether the scheduler has noticed is another matter.
func (c *climb) fits() *Finding {
	nodes := map[string]bool{}
	for _, a := range c.Place.Placement {
		nodes[a.Node] = true
	}
	what := "all " + phrase.Count(c.g.Total(), "member")
	if c.g.Total() == 1 {
		what = "its 1 member"
	} else if int32(len(c.Place.Placement)) < c.g.Total()-c.g.Count(gang.Starting, gang.Running, gang.Succeeded) {
		what = fmt.Sprintf("%d of %d members (it needs %d)", c.placedOf(*c.Place), c.g.Total(), c.g.Min)
	}
	if n := len(c.Party.Bound); n > 0 {
		what = fmt.Sprintf("the other %d of %d members", len(c.Place.Placement), c.g.Total())
	}
	f := found(answer.StageScheduler, answer.Fits, answer.FitsNow, answer.Nobody, "fits now: room for %s on %s", what, phrase.Names(sortedKeys(nodes))).
		fact("members", len(c.Place.Placement)).fact("nodes", sortedKeys(nodes))
	if c.w.Assumed {
		return f
	}
	since, attempt := c.fitsSince(), c.lastAttempt()
	switch {
	case !attempt.IsZero():
		f.detail("the scheduler last tried %s ago", phrase.Age(c.w.Age(attempt)))
	case !c.g.Meta.CreationTimestamp.IsZero():
		f.detail("submitted %s ago; the scheduler has not said anything yet", phrase.Age(c.w.Age(c.g.Meta.CreationTimestamp.Time)))
	}
	silent := attempt.IsZero() || c.w.Age(attempt) > notPlacedAfter
	absent := c.g.Count(gang.Missing, gang.Gated)
	if c.gatedByQueue() {
		absent = 0 // no pods are made before the scheduler has admitted the gang, and that is its turn
	}
	if silent && absent == 0 && c.w.Age(since) > notPlacedAfter {
		f.Code, f.Verdict, f.Who = answer.FitsNotPlaced, answer.Blocked, answer.Admin
		f.Message += fmt.Sprintf(", and has for %s, but scheduler %s does not place it", phrase.Age(c.w.Age(since)), c.g.Scheduler)
		f.since(since)
		for _, d := range FindScheduler(c.w, c.g.Scheduler).Deployments {
			f.run("kubectl -n " + d.Namespace + " logs deployment/" + d.Name + " --tail=100")
		}
	}
	return f
}

// lastAttempt is when the scheduler last said that it tried.
func (c *climb) lastAttempt() time.Time {
	var last time.Time
	for _, e := range c.w.PodEvents(c.g) {
		if e.Reason == "FailedScheduling" || e.Reason == "Unschedulable" {
			last = latest(last, e.Last)
		}
	}
	if d := c.g.Decl; d != nil {
		for _, w := range d.Words {
			last = latest(last, w.At)
		}
		for _, e := range c.w.Events("PodGroup", d.Key.Namespace, d.Key.Name) {
			last = latest(last, e.Last)
		}
	}
	if !last.IsZero() {
		return last
	}
	for _, m := range c.g.Members {
		if m.Pod == nil {
			continue
		}
		for _, cond := range m.Pod.Status.Conditions {
			if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
				last = latest(last, cond.LastTransitionTime.Time)
			}
		}
	}
	return last
}

// fitsSince is the latest moment at which the cluster became what it is, as far as objects tell: pods made or ended, nodes
// made or become ready.
func (c *climb) fitsSince() time.Time {
	last := c.g.Meta.CreationTimestamp.Time
	for _, m := range c.g.Members {
		if m.Pod != nil {
			last = latest(last, m.Pod.CreationTimestamp.Time)
		}
	}
	if d := c.g.Decl; d != nil {
		last = latest(last, d.Created)
	}
	for _, n := range c.w.Cluster().Nodes() {
		last = latest(last, n.CreationTimestamp.Time)
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				last = latest(last, cond.LastTransitionTime.Time)
			}
		}
	}
	for _, p := range c.w.Snap.Pods {
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Terminated != nil && p.Spec.NodeName != "" {
				last = latest(last, s.State.Terminated.FinishedAt.Time)
			}
		}
	}
	return last
}

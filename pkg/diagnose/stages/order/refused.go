package order

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// refusedAfter is how long a gang may fit, and its scheduler refuse it, before that is strange. A try that fails does so for a fault of the scheduler, or of what it calls.
const (
	refusedAfter = 15 * time.Minute
	failedAfter  = 5 * time.Minute
)

// reportsWithin is how old the latest report of a scheduler may be that refuses a gang again and again.
const reportsWithin = 5 * time.Minute

// refused is from when on a gang that fits since a moment has been refused, and the latest report of that; nil where its scheduler has not refused it for long enough, or something
// has given room since.
func refused(c *stage.Context, since time.Time) (from time.Time, latest *view.Event) {
	from = c.View.Now
	for _, e := range c.View.PodEvents(c.Gang) {
		if p := c.View.Pod(e.Namespace, e.Name); !e.Refuses() || c.View.Age(e.Last) > reportsWithin || p == nil || p.Spec.NodeName != "" {
			continue
		}
		if latest == nil {
			latest = &e
		}
		if e.First.Before(from) {
			from = e.First
		}
	}
	after := refusedAfter
	if latest != nil && latest.FailsToBind() || slices.ContainsFunc(c.Gang.Members, func(m gang.Member) bool { return m.State == gang.Pending && tryFails(m.Pod) }) {
		after = failedAfter
	}
	if from = view.Later(view.Later(from, since), roomGiven(c)); latest == nil || c.View.Age(from) <= after {
		return from, nil
	}
	return from, latest
}

// tryFails reports whether the scheduler could not finish its last try to place a pod.
func tryFails(p *corev1.Pod) bool {
	cond := gang.Refusal(p)
	return cond != nil && cond.Reason == corev1.PodReasonSchedulerError
}

// reasonLimit is how much of the message of a try that failed is quoted, in bytes: the API server passes on what webhooks answer.
const reasonLimit = 500

// lastTryFailed adds that the scheduler had found nodes, and what it calls refused them: a binding, or the volume of a member.
func lastTryFailed(c *stage.Context, f *stage.Finding) {
	for _, m := range c.Gang.Members {
		if m.State == gang.Pending && tryFails(m.Pod) && gang.Refusal(m.Pod).Message != "" {
			f.Message += fmt.Sprintf("; but scheduler %s could not finish its last try at pod %s: %s", c.Gang.Scheduler, m.Pod.Name, phrase.Shorten(gang.Refusal(m.Pod).Message, reasonLimit))
			f.See("v1", "Pod", m.Pod, ".status.conditions")
			return
		}
	}
}

// roomGiven is when a pod was last killed, a Job completed or a node uncordoned, as far as that was reported: no object shows that of one that is gone, or of the node.
func roomGiven(c *stage.Context) time.Time {
	type lastGiven struct{}
	return view.Once(c.View, lastGiven{}, func() (last time.Time) {
		for kind, reason := range map[string]string{"Pod": "Killing", "Job": "Completed", "Node": "NodeSchedulable"} {
			all := c.View.EventsOf(kind) // the latest first
			if i := slices.IndexFunc(all, func(e view.Event) bool { return e.Reason == reason }); i >= 0 {
				last = view.Later(last, all[i].Last)
			}
		}
		return last
	})
}

package placement

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/autoscaler"
	"github.com/gangctl/gangctl/pkg/gang"
)

// passes looks for what is on its way already: pods that are leaving, nodes that are coming. It reports whether that alone
// makes the gang fit.
func passes(c *stage.Context, coming *autoscaler.Arrivals, out *stage.Result) bool {
	if after := c.AfterDeletions(); after != c.Cluster() && c.Fit(after, nil).Fits() {
		out.Add(victims(c, "and then it fits"))
		return true
	}
	if found := resizing(c); len(found) > 0 {
		for _, f := range found {
			out.Add(f)
		}
		return true
	}
	if coming != nil && coming.In(c).Placement.Fits() {
		out.Add(coming.Finding(c, ", and then it fits"))
		return true
	}
	if f := autoscaler.Awaited(c); f != nil {
		out.Add(f)
		return true
	}
	return false
}

// victims finds that pods are being deleted, and what the room that they leave is for.
func victims(c *stage.Context, effect string) *stage.Finding {
	var names, lines []string
	var last time.Time
	what := "deleted"
	pods, _ := inTheWay(c, c.Causes(c.Cluster()), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && !c.View.Stuck(p) })
	going := sets.New(pods...)
	for _, h := range c.Deleted() {
		var end time.Time
		for _, p := range h.Pods {
			if !going.Has(p) {
				continue
			}
			end = view.Later(end, p.DeletionTimestamp.Time)
			what = cmp.Or(disrupted(p), what)
		}
		if !end.IsZero() {
			names = append(names, c.Name(h))
			lines = append(lines, fmt.Sprintf("%s is terminating, at most %s left", c.Title(h), phrase.Age(max(0, end.Sub(c.View.Now)))))
			last = view.Later(last, end)
		}
	}
	f := stage.Found(answer.VictimsTerminating, "%s %s being %s, %s: at most %s left", phrase.Names(names), phrase.Verb(len(names), "is", "are"), what, effect, phrase.Age(max(0, last.Sub(c.View.Now)))).
		Fact("victims", names).Fact("until", last.UTC().Format(time.RFC3339))
	for _, line := range lines {
		f.Detail("%s", line)
	}
	return f
}

// disrupted is what happens to a pod that is deleted for others, as its condition has it; empty if it is just deleted.
func disrupted(p *corev1.Pod) string {
	switch cond := gang.Disruption(p); {
	case cond == nil || cond.Reason == "DeletionByPodGC":
		return ""
	case cond.Reason == "EvictionByEvictionAPI" || cond.Reason == "DeletionByTaintManager" || cond.Reason == corev1.PodReasonTerminationByKubelet:
		return "evicted"
	}
	return "preempted"
}

package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// resourceGap finds that the scheduler tries no member of the gang for what minResources of its PodGroup state: that of scheduler-plugins compares them with what is left of all
// nodes together, but for what pods of the group use, whether members may use these nodes or not. Gangctl's compares nothing.
func resourceGap(c *stage.Context, out *stage.Result) {
	d := c.Gang.Decl
	if d == nil || d.Key.Dialect != gang.SchedulerPlugins || len(d.MinResources) == 0 || component.Bypassed(c.View, c.Gang) {
		return
	}
	compares, known := component.RunsPlugins(c.View, c.Gang.Scheduler)
	if known && !compares {
		return
	}
	needs := whatif.Needs(c.Gang.Roles, min(c.Gang.Min, c.Gang.Total()))
	for _, name := range slices.SortedFunc(maps.Keys(d.MinResources), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(gpuLast(b), gpuLast(a)), cmp.Compare(a, b))
	}) {
		stated, need := request.Amount(name, d.MinResources[name]), request.Amount(name, needs[name])
		total, used := queueing.InCluster(c.View, name)
		for _, pod := range c.Gang.ExistingPods() {
			if pod.Spec.NodeName != "" {
				used -= request.OfResource(pod, name)
			}
		}
		if free := max(0, total-used); stated > free {
			if f := gap(c, name, stated, need, free, total); known || gapReported(c) {
				out.Add(f)
			} else {
				out.Note("minResources of PodGroup %s are %s, and %s of %s are free on all nodes together: if scheduler %s is that of scheduler-plugins, it tries no member before",
					d.Key.Name, phrase.Amount(name, stated), phrase.Quantity(name, free), phrase.Amount(name, total), c.Gang.Scheduler)
			}
			return
		}
	}
}

// gapReportMaxAge is how old that report may be to count: a scheduler tries again all the time.
const gapReportMaxAge = 2 * time.Minute

// gapReported reports whether the scheduler refuses a pod of the gang for minResources, in the words of scheduler-plugins.
func gapReported(c *stage.Context) bool {
	return slices.ContainsFunc(c.View.PodEvents(c.Gang), func(e view.Event) bool {
		return e.Reason == "FailedScheduling" && c.View.Age(e.Last) <= gapReportMaxAge && strings.Contains(e.Message, "resource gap")
	})
}

func gpuLast(name corev1.ResourceName) int {
	if request.IsGPU(name) {
		return 1
	}
	return 0
}

// gap is the finding that minResources state more of a resource than is free.
func gap(c *stage.Context, name corev1.ResourceName, stated, need, free, total int64) *stage.Finding {
	d := *c.Gang.Decl
	text := func(n int64) string { return phrase.Quantity(name, n) }
	of := ", as its members need"
	if need < stated {
		of = ", of which its members need " + text(need)
	}
	f := stage.Found(answer.Shortage(string(name), false), "minResources of PodGroup %s are %s%s, and %s of %s are free on all nodes together: scheduler %s tries no member before",
		d.Key.Name, phrase.Amount(name, stated), of, phrase.Quantity(name, free), phrase.Amount(name, total), c.Gang.Scheduler)
	if stated > total {
		f.Become(answer.TooBig)
		f.Message = "minResources of PodGroup " + d.Key.Name + " are " + phrase.Amount(name, stated) + of + ", and all nodes together have " + phrase.Quantity(name, total) + ": scheduler " + c.Gang.Scheduler + " never tries a member"
	}
	f.Detail("the scheduler compares minResources with what is left of all nodes before it looks at any pod").
		Detail("requested %s, free %s, total %s (%s)", text(stated), text(free), text(total), name).
		Fact("resource", string(name)).Fact("requested", stated).Fact("available", free).Fact("total", total).
		SeeGroup(d, ".spec.minResources")
	if need < stated {
		f.Fix(patch.LowerMinResources(c.View, c.Gang, name, need)).Fact("overstated", need <= free)
	}
	return f
}

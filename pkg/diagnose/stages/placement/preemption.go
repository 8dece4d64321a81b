package placement

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// preemption adds which jobs and services of a lower priority are in the way, and why they are still there: the gang's scheduler has not preempted them, may not, or would in vain.
func preemption(c *stage.Context, f *stage.Finding) {
	mine := stage.TermsOf(c.Gang, c.Request)
	lower := below(c, mine.Priority)
	if len(lower) == 0 {
		f.Fact("victims", false)
		return
	}
	names := phrase.NamesOf(lower, func(h *view.Consumer) string {
		return fmt.Sprintf("%s (priority %d < %d)", c.Title(h), h.Priority(), mine.Priority)
	})
	switch {
	case mine.Policy != "":
		by := ""
		if class := c.Request.Roles[0].Pod.Spec.PriorityClassName; class != "" {
			by = " by PriorityClass " + class
		}
		f.Detail("its preemptionPolicy is %s%s: it may not preempt %s", mine.Policy, by, names)
	case !c.Fit(c.AfterPreemption(mine.Priority), nil).Fits():
		f.Detail("preempting %s would not make room for all", names).Fact("victims", false)
	default:
		if by := component.PreemptsBy(c.View, schedulerName(c)); by != "" {
			f.Detail("whether its scheduler preempts %s is not known: %s", names, by)
			return
		}
		f.Detail("its scheduler may preempt %s, and has not yet", names)
		against(c, f, lower, mine.Priority)
	}
}

// schedulerName is the scheduler of the members that are to be placed.
func schedulerName(c *stage.Context) string {
	return cmp.Or(c.Request.Roles[0].Pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

// against adds the PodDisruptionBudgets without going against which preemption makes no room. Schedulers do so only then.
func against(c *stage.Context, f *stage.Finding, lower []*view.Consumer, priority int32) {
	var guarded []string
	unguarded := func(h *view.Consumer, p *corev1.Pod) bool {
		return !c.View.Stuck(p) && (p.DeletionTimestamp != nil || h.Priority() < priority && len(c.View.Budgets(p)) == 0)
	}
	for _, h := range lower {
		if text := c.Guarded(h.Pods); text != "" {
			guarded = append(guarded, text)
		}
	}
	if len(guarded) > 0 && !c.Fit(c.Without(unguarded), nil).Fits() {
		f.Detail("%s: a scheduler goes against that only where nothing else makes room", phrase.Names(guarded))
	}
}

// below are those of a lower priority that are in the way of the gang.
func below(c *stage.Context, priority int32) (lower []*view.Consumer) {
	if c.Lowest() >= priority {
		return nil
	}
	obstructs := obstructing(c, c.Cluster())
	for _, h := range c.Others() {
		if h.Priority() < priority && slices.ContainsFunc(h.Pods, obstructs) {
			lower = append(lower, h)
		}
	}
	return lower
}

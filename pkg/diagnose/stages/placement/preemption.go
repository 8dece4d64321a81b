package placement

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement/disruption"
)

// preemption adds which jobs and services of a lower priority are in the way, and why they are still there: the gang's scheduler has not preempted them, may not, or would gain nothing.
func preemption(c *stage.Context, f *stage.Finding) {
	if name, ok := f.Facts["resource"].(string); ok {
		if text := queueing.Deserved(c.View, c.Gang, corev1.ResourceName(name)); text != "" {
			f.Detail("%s", text)
		}
	}
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
		if component.PreemptsBy(c.View, schedulerName(c)) == "" && c.Fit(c.AfterEndsAndPreemption(mine.Priority), nil).Fits() {
			f.Detail("preempting %s would not make room for all before other jobs have ended", names).Fact("victims", false)
			return
		}
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

// preempts reports whether the gang's scheduler will make room by itself: by preempting what has a lower priority and never ends, once jobs have ended. Where it could have
// done so for long, it does not.
func preempts(c *stage.Context) bool {
	mine := stage.TermsOf(c.Gang, c.Request)
	if mine.Policy != "" || c.Lowest() >= mine.Priority || component.PreemptsBy(c.View, schedulerName(c)) != "" || !c.Fit(c.AfterEndsAndPreemption(mine.Priority), nil).Fits() {
		return false
	}
	return c.View.Age(c.UnchangedSince()) <= stage.ActsWithin || !c.Fit(c.AfterPreemption(mine.Priority), nil).Fits()
}

// schedulerName is the scheduler of the members that are to be placed.
func schedulerName(c *stage.Context) string {
	return cmp.Or(c.Request.Roles[0].Pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

// maxGuarded is of how many consumers the budgets are named that keep preemption from them.
const maxGuarded = 4

// against adds the PodDisruptionBudgets without going against which preemption makes no room. Schedulers do so only then.
func against(c *stage.Context, f *stage.Finding, lower []*view.Consumer, priority int32) {
	kept := guarded(c, priority)
	var names []string
	for _, h := range lower {
		if budgets := kept.budgets[h]; len(budgets) > 0 && len(names) < maxGuarded {
			names = append(names, c.Budgets(budgets))
		}
	}
	unguarded := func(h *view.Consumer, p *corev1.Pod) bool {
		return !c.View.Stuck(p) && (p.DeletionTimestamp != nil || h.Priority() < priority && !kept.pods.Has(p))
	}
	if len(names) > 0 && !c.Fit(c.Cleared(fmt.Sprint("without the unguarded below ", priority), unguarded), nil).Fits() {
		f.Detail("%s: a scheduler goes against that only where nothing else makes room", phrase.Names(names))
	}
}

// guards are the pods that PodDisruptionBudgets do not let go, and these budgets by consumer.
type guards struct {
	pods    sets.Set[*corev1.Pod]
	budgets map[*view.Consumer][]view.Exceeded
}

// guarded are the pods of a lower priority than a gang's of which a PodDisruptionBudget lets none go. Of one that lets some go it is not known which a scheduler takes.
func guarded(c *stage.Context, priority int32) guards {
	type guardedBelow struct{ priority int32 }
	return view.Once(c.View, guardedBelow{priority}, func() guards {
		all := guards{sets.New[*corev1.Pod](), map[*view.Consumer][]view.Exceeded{}}
		for _, h := range c.View.Consumers() {
			if h.DaemonSet || h.Priority() >= priority {
				continue
			}
			pods := slices.DeleteFunc(slices.Clone(h.Pods), func(p *corev1.Pod) bool { return !slices.ContainsFunc(c.View.Budgets(p), keepsAll) })
			if len(pods) > 0 {
				all.pods.Insert(pods...)
				all.budgets[h] = slices.DeleteFunc(c.View.ExceededBudgets(pods), func(e view.Exceeded) bool { return !keepsAll(e.Budget) })
			}
		}
		return all
	})
}

// keepsAll reports whether a PodDisruptionBudget keeps schedulers from all of its pods.
func keepsAll(b disruption.Budget) bool { return b.Allows() == 0 && !b.SelectsAll() }

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

package component

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// Unseen reports whether nothing shows that a scheduler of a name is, or was, there.
func Unseen(v *view.View, g *gang.Gang, name string) bool {
	s := FindScheduler(v, name, g.Meta.Namespace)
	return len(s.Deployments) == 0 && len(s.Leases) == 0 && s.LastSeen.IsZero() && !s.BoundBefore && !judgedOf(g, name)
}

// Absent reports whether there is no scheduler of a name: one that works would be seen, or the name is nearly that of another one.
func Absent(v *view.View, g *gang.Gang, name string) bool {
	return name != corev1.DefaultSchedulerName && Unseen(v, g, name) && (len(v.Snap.Deployments)+len(v.Snap.Leases) > 0 || Misspelt(v, g.Meta.Namespace, name) != "")
}

// Misspelt is the scheduler that was probably meant by a name which is that of none: one that is seen here, or that people know; "" if none is like it.
func Misspelt(v *view.View, namespace, name string) string {
	here := append(SchedulerNames(v, namespace), binders(v)...)
	known := []string{corev1.DefaultSchedulerName}
	for _, r := range dialect.Readers() {
		known = append(known, r.Schedulers...)
	}
	if slices.Contains(here, name) || slices.Contains(known, name) {
		return ""
	}
	if nearest := nearestScheduler(name, here); nearest != "" {
		return nearest
	}
	return nearestScheduler(name, known)
}

// nearestScheduler is the name that takes the fewest edits; how many names end does not count.
func nearestScheduler(name string, names []string) string {
	bare := map[string]string{}
	for _, n := range names {
		bare[strings.TrimSuffix(n, "-scheduler")] = n
	}
	return bare[suggest.Nearest(strings.TrimSuffix(name, "-scheduler"), slices.Sorted(maps.Keys(bare)))]
}

// binders are the schedulerNames of pods that have a node.
func binders(v *view.View) []string {
	type binders struct{}
	return view.Once(v, binders{}, func() []string {
		names := map[string]bool{}
		for _, pod := range v.Snap.Pods {
			if pod.Spec.NodeName != "" && pod.Spec.SchedulerName != "" {
				names[pod.Spec.SchedulerName] = true
			}
		}
		return slices.Sorted(maps.Keys(names))
	})
}

// judgedOf reports whether some scheduler has written into one of the pods of a gang that name it that it found no place.
func judgedOf(g *gang.Gang, name string) bool {
	return slices.ContainsFunc(g.Members, func(m gang.Member) bool {
		return m.Pod != nil && gang.SchedulerName(m.Pod) == name && slices.ContainsFunc(m.Pod.Status.Conditions, func(cond corev1.PodCondition) bool {
			return cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && cond.Reason != corev1.PodReasonSchedulingGated
		})
	})
}

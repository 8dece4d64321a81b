package component

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// Unseen reports whether nothing shows that a scheduler of a name is, or was, there.
func Unseen(v *view.View, g *gang.Gang, name string) bool {
	s := FindScheduler(v, name, g.Meta.Namespace)
	return len(s.Deployments) == 0 && len(s.Leases) == 0 && s.LastSeen.IsZero() && !s.BoundBefore && !judgedOf(g, name)
}

// MaxSchedulers is how many schedulers that single members of a gang name are looked for: tenants decide how many there are.
const MaxSchedulers = 4

// Absent reports whether there is no scheduler of a name: one that works would be seen, or the name is nearly that of another one. To a reader who may not look for one only
// its name shows that.
func Absent(v *view.View, g *gang.Gang, name string) bool {
	if name == corev1.DefaultSchedulerName || !Unseen(v, g, name) {
		return false
	}
	looked := v.Snap.CanList("deployments.apps", "") && v.Snap.CanList("leases.coordination.k8s.io", "") && len(v.Snap.Deployments)+len(v.Snap.Leases) > 0
	meant := Misspelt(v, g.Meta.Namespace, name)
	if len(Configured(v)) > 0 && waited(v, g, name) <= silentFor {
		return meant != "" && strings.TrimSuffix(meant, "-scheduler") != strings.TrimSuffix(name, "-scheduler")
	}
	return looked || meant != ""
}

// silentFor is for how long pods may name a scheduler that has not written into one of them: one that works does so within seconds.
const silentFor = 5 * time.Minute

// Configured are the Deployments of kube-schedulers whose configuration file has the names that they serve, which is not known.
func Configured(v *view.View) []*appsv1.Deployment {
	type configured struct{}
	return view.Once(v, configured{}, func() (all []*appsv1.Deployment) {
		for _, d := range v.Snap.Deployments {
			if slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
				return strings.Contains(imagename.Base(c.Image), "kube-scheduler") && Flag(c, "config") != ""
			}) {
				all = append(all, d)
			}
		}
		return Trusted(v, Schedulers(), all)
	})
}

// waited is for how long a pod of a gang has named a scheduler, and has no node.
func waited(v *view.View, g *gang.Gang, name string) (longest time.Duration) {
	for _, m := range g.Members {
		if m.State == gang.Pending && gang.SchedulerName(m.Pod) == name && !m.Pod.CreationTimestamp.IsZero() {
			longest = max(longest, v.Age(m.Pod.CreationTimestamp.Time))
		}
	}
	return longest
}

// Misspelt is the scheduler that was probably meant by a name which is that of none: one that people know, or that is seen here; "" if none is like it.
func Misspelt(v *view.View, namespace, name string) string {
	here := append(SchedulerNames(v, namespace), binders(v)[namespace]...)
	known := append(dialect.Schedulers(), corev1.DefaultSchedulerName)
	if slices.Contains(here, name) || slices.Contains(known, name) {
		return ""
	}
	return cmp.Or(nearestScheduler(name, known), nearestScheduler(name, here))
}

// nearestScheduler is the name that takes the fewest edits; how many names end does not count. Of a short name two edits make another one.
func nearestScheduler(name string, names []string) string {
	typed, bare := strings.TrimSuffix(name, "-scheduler"), map[string]string{}
	for _, n := range names {
		bare[strings.TrimSuffix(n, "-scheduler")] = n
	}
	return bare[suggest.Nearest(typed, slices.DeleteFunc(slices.Sorted(maps.Keys(bare)), func(n string) bool { return min(len(n), len(typed)) < 5 && !suggest.OneEdit(typed, n) }))]
}

// binders are the schedulerNames of pods that have a node, by namespace.
func binders(v *view.View) map[string][]string {
	type binders struct{}
	return view.Once(v, binders{}, func() map[string][]string {
		type binder struct{ namespace, name string }
		seen, names := map[binder]bool{}, map[string][]string{}
		for _, pod := range v.Snap.Pods {
			b := binder{pod.Namespace, pod.Spec.SchedulerName}
			if pod.Spec.NodeName != "" && b.name != "" && !seen[b] {
				seen[b], names[b.namespace] = true, append(names[b.namespace], b.name)
			}
		}
		return names
	})
}

// judgedOf reports whether some scheduler has written into one of the pods of a gang that name it that it found no place.
func judgedOf(g *gang.Gang, name string) bool {
	return slices.ContainsFunc(g.Members, func(m gang.Member) bool {
		return m.Pod != nil && gang.SchedulerName(m.Pod) == name && refused(m.Pod)
	})
}

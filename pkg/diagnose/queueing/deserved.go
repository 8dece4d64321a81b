package queueing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// deservedShare is what a queue of Volcano, or of KAI, deserves of a resource, and uses.
type deservedShare struct {
	queue          string
	deserves, uses int64
	// keeps reports that nothing is taken back from a queue: its spec.reclaimable is false.
	keeps bool
}

// Deserved is what Volcano could take back for a gang from queues that have more of a resource than they deserve, or KAI takes back, while its own has less, in a sentence; "" where it
// is not so.
func Deserved(v *view.View, g *gang.Gang, name corev1.ResourceName) string {
	kind, queue, ok := Queue(v, g)
	if !ok || g.Decl == nil {
		return ""
	}
	of, then := g.Decl.Key.Dialect, "Volcano takes that back only with action reclaim, which is off by default"
	switch {
	case of == gang.Volcano && g.Scheduler == volcano.SchedulerName:
	case of == gang.KAI:
		then = "KAI takes that back for it, from gangs that can be preempted"
	default:
		return ""
	}
	all := deservedShares(v, kind, of, name)
	i := slices.IndexFunc(all, func(d deservedShare) bool { return d.queue == queue })
	if i < 0 || all[i].uses >= all[i].deserves {
		return ""
	}
	text := func(n int64) string { return phrase.Quantity(name, n) }
	above := slices.DeleteFunc(slices.Clone(all), func(d deservedShare) bool { return d.uses <= d.deserves })
	if len(above) == 0 {
		return ""
	}
	keep := 0
	for _, d := range above {
		if d.keeps {
			keep++
		}
	}
	if keep == len(above) {
		then = "Volcano never takes that back, as " + phrase.Verb(keep, "its spec.reclaimable is false", "their spec.reclaimable is false")
	}
	return fmt.Sprintf("queue %s uses %s of the %s that it deserves, and %s: %s", queue, text(all[i].uses), phrase.Amount(name, all[i].deserves),
		phrase.NamesOf(above, func(d deservedShare) string {
			share := fmt.Sprintf("queue %s %s of %s", d.queue, text(d.uses), text(d.deserves))
			if d.keeps && keep < len(above) {
				share += " (reclaimable: false)"
			}
			return share
		}), then)
}

// deservedShares are all queues that deserve some of a resource, with what pods of their gangs use.
func deservedShares(v *view.View, kind schema.GroupKind, of gang.Dialect, name corev1.ResourceName) []deservedShare {
	type deservedSharesOf struct{ corev1.ResourceName }
	return view.Once(v, deservedSharesOf{name}, func() (all []deservedShare) {
		uses := map[string]int64{}
		for _, d := range v.Groups() {
			if d.Key.Dialect != of {
				continue
			}
			uses[d.Queue] = request.Sum(uses[d.Queue], Held(v.GroupPods(d), name))
		}
		for _, u := range v.Snap.Custom[kind] {
			if n, stated := deserves(u, of, name); stated {
				reclaimable, stated, _ := unstructured.NestedBool(u.Object, "spec", "reclaimable")
				all = append(all, deservedShare{u.GetName(), n, uses[u.GetName()], of == gang.Volcano && stated && !reclaimable})
			}
		}
		return all
	})
}

// deserves is what a queue deserves of a resource, which KAI calls its quota.
func deserves(queue *unstructured.Unstructured, of gang.Dialect, name corev1.ResourceName) (amount int64, stated bool) {
	if of == gang.KAI {
		i := slices.IndexFunc(kai.QueueAmounts(), func(a kai.QueueAmount) bool { return a.Name == name })
		if i < 0 {
			return 0, false
		}
		return kai.QueueAmounts()[i].Of(queue, "quota")
	}
	f := gang.Fields{Object: queue}
	n, stated := f.Resources("spec", "deserved")[name]
	return request.Amount(name, n), stated
}

// Held is the amount of a resource that those of some pods request that have nodes.
func Held(pods []*corev1.Pod, name corev1.ResourceName) (amount int64) {
	for _, pod := range pods {
		if placement.Holds(pod) {
			amount = request.Sum(amount, request.OfResource(pod, name)-request.ByClaims(pod, name))
		}
	}
	return amount
}

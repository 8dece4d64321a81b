package queue

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

const (
	// maxRounds is in how many rounds shares are handed out at most: what is left after that is next to nothing.
	maxRounds = 64
	// maxWeight is the largest weight that is offered.
	maxWeight = 64
	// maxQueues is how many queues are named for what they request.
	maxQueues = 8
)

// amounts are those of some resources, in the unit of request.Amount.
type amounts map[corev1.ResourceName]float64

// weighed is a queue of Volcano among others that request what the nodes have.
type weighed struct {
	queue  *unstructured.Unstructured
	weight float64
	// request is what its pods request, with a node or without, and used what those with a node do; deserved is its share.
	request, used, deserved amounts
	// guaranteed is what it is guaranteed, limit what it can have at most.
	guaranteed, limit amounts
}

// whole is an amount in whole units; tenants may request more than any number holds.
func whole(n float64) int64 { return int64(min(n, 1<<62)) }

// byWeight finds that a gang is to have more than the share that its queue gets by weight, although nodes have it. Volcano's plugin proportion, which it is installed with, places
// no more: as long as pods of other queues request the rest, also those that find no place. Its plugin capacity, in which queues have parents or state what they
// deserve, shares nothing by weight.
func byWeight(c *stage.Context, out *stage.Result, q *unstructured.Unstructured) {
	queues := c.View.Snap.Custom[volcano.QueueKind()]
	if slices.ContainsFunc(queues, func(u *unstructured.Unstructured) bool {
		f := gang.Fields{Object: u}
		return volcanoParent(u) != rootQueue || len(f.Map("spec", "deserved")) > 0
	}) {
		return
	}
	need := needs(c)
	names := slices.DeleteFunc(slices.SortedFunc(maps.Keys(need), devicesFirst), func(name corev1.ResourceName) bool { return !counted(name) })
	all, own := weighedQueues(c, queues, q, names, need)
	if len(all) < 2 {
		return
	}
	total := amounts{}
	for _, n := range c.View.Cluster().Nodes() {
		for _, name := range names {
			total[name] += float64(request.Amount(name, n.Status.Allocatable[name]))
		}
	}
	for _, w := range all {
		w.bound(queues, total)
	}
	handOut(all, total)
	for _, name := range names {
		want := float64(request.Amount(name, need[name]) - held(c.Gang.ExistingPods(), name))
		taken := 0.0
		for _, h := range c.View.Consumers() {
			taken += float64(h.Total(name))
		}
		if want > 0 && own.used[name]+want > own.deserved[name] && taken+want <= total[name] {
			out.Add(overWeight(all, own, name, want, total))
			return
		}
	}
}

// weighedQueues are the queues that pods request something of, and the one of the gang, with what its members request, whether they are made or not.
func weighedQueues(c *stage.Context, queues []*unstructured.Unstructured, q *unstructured.Unstructured, names []corev1.ResourceName, need corev1.ResourceList) (all []*weighed, own *weighed) {
	of := map[string]*weighed{}
	at := func(name string) *weighed {
		i := slices.IndexFunc(queues, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
		if of[name] == nil && i >= 0 {
			f := gang.Fields{Object: queues[i]}
			of[name] = &weighed{queue: queues[i], weight: float64(max(1, f.Int32("spec", "weight"))), request: amounts{}, used: amounts{}, deserved: amounts{}}
			all = append(all, of[name])
		}
		return of[name]
	}
	own = at(q.GetName())
	made := amounts{} // what the gang's own pods request
	for _, d := range c.View.Groups() {
		if d.Key.Dialect != gang.Volcano || at(d.Queue) == nil {
			continue
		}
		w, pods := of[d.Queue], c.View.GroupPods(d)
		for _, name := range names {
			sum := 0.0
			for _, pod := range pods {
				if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
					sum += float64(request.OfResource(pod, name))
				}
			}
			w.used[name], w.request[name] = w.used[name]+float64(held(pods, name)), w.request[name]+sum
			if c.Gang.Decl != nil && d.Key == c.Gang.Decl.Key {
				made[name] += sum
			}
		}
	}
	for _, name := range names {
		own.request[name] += max(0, float64(request.Amount(name, need[name]))-made[name])
	}
	return all, own
}

// handOut gives each queue its share, as Volcano does: by weight, up to what it requests and to its limits, and what one does not take to the others again.
func handOut(all []*weighed, total amounts) {
	left, open := maps.Clone(total), slices.Clone(all)
	for range maxRounds {
		weights, given := 0.0, amounts{}
		for _, w := range open {
			weights += w.weight
		}
		next := slices.Clone(open)
		for _, w := range open {
			changed, met := false, true
			for name := range total {
				was := w.deserved[name]
				w.deserved[name] = max(min(was+left[name]*w.weight/weights, w.limit[name], w.request[name]), w.guaranteed[name])
				given[name] += w.deserved[name] - was
				changed, met = changed || w.deserved[name] != was, met && w.request[name] <= w.deserved[name]
			}
			if met || !changed {
				next = slices.DeleteFunc(next, func(other *weighed) bool { return other == w })
			}
		}
		rest := 0.0
		for name := range total {
			left[name] = max(0, left[name]-given[name])
			rest += left[name]
		}
		if open = next; len(open) == 0 || rest == 0 {
			return
		}
	}
}

// bound reads what the queue is guaranteed, and what it can have at most: its capability, and what the guarantees of others leave.
func (w *weighed) bound(queues []*unstructured.Unstructured, total amounts) {
	w.guaranteed, w.limit = amounts{}, maps.Clone(total)
	f := gang.Fields{Object: w.queue}
	capability := f.Resources("spec", "capability")
	for name := range total {
		for _, u := range queues {
			amount := float64(request.Amount(name, guaranteedTo(u)[name]))
			if u == w.queue {
				w.guaranteed[name] = amount
				continue
			}
			w.limit[name] = max(0, w.limit[name]-amount)
		}
		if q, ok := capability[name]; ok && request.Amount(name, q) > 0 {
			w.limit[name] = min(w.limit[name], float64(request.Amount(name, q)))
		}
	}
}

func overWeight(all []*weighed, own *weighed, name corev1.ResourceName, want float64, total amounts) *stage.Finding {
	text := func(n float64) string { return phrase.Quantity(name, whole(n)) }
	f := stage.Found(answer.QueueQuota, "queue %s has %s of %s left that it gets by its weight, and the gang needs %s: other queues request the rest", own.queue.GetName(),
		text(max(0, own.deserved[name]-own.used[name])), phrase.Amount(name, whole(own.deserved[name])), text(want)).
		See(own.queue.GetAPIVersion(), own.queue.GetKind(), own.queue, ".spec.weight").
		Detail("requested %s, used %s, limit %s of the %s of the cluster (%s), by weight %v", text(want), text(own.used[name]), text(own.deserved[name]), text(total[name]), name, own.weight).
		Fact("queue", own.queue.GetName()).Fact("resource", string(name)).Fact("requested", whole(want)).Fact("used", whole(own.used[name])).
		Fact("limit", whole(own.deserved[name])).Fact("available", whole(max(0, own.deserved[name]-own.used[name]))).Fact("weight", int64(own.weight))
	others := slices.DeleteFunc(slices.Clone(all), func(w *weighed) bool { return w == own || w.request[name] == 0 })
	for _, w := range others[:min(len(others), maxQueues)] {
		f.Detail("queue %s requests %s and uses %s, by weight %v: pods that find no place count, too", w.queue.GetName(), text(w.request[name]), text(w.used[name]), w.weight)
	}
	weight, ok := enough(all, own, name, want, total)
	if !ok {
		return f
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise the weight of queue %s to %d", own.queue.GetName(), weight),
			Change:  map[string]any{"weight": weight, "object": "Queue/" + own.queue.GetName()},
			Command: command.MergePatch("", "queue."+volcano.Group, own.queue.GetName(), map[string]any{"spec": map[string]any{"weight": weight}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, volcano.QueueKind(), "", own.queue.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, weight, "spec", "weight") })
		},
	})
}

// enough is the least weight with which the queue gets what the gang needs; ok is false if none is.
func enough(all []*weighed, own *weighed, name corev1.ResourceName, want float64, total amounts) (weight int64, ok bool) {
	for weight = int64(own.weight) + 1; weight <= maxWeight; weight++ {
		var others []*weighed
		var tried *weighed
		for _, w := range all {
			other := *w
			if other.deserved = (amounts{}); w == own {
				other.weight, tried = float64(weight), &other
			}
			others = append(others, &other)
		}
		if handOut(others, total); tried.used[name]+want <= tried.deserved[name] {
			return weight, true
		}
	}
	return 0, false
}

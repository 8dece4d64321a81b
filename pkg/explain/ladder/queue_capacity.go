package ladder

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload/demand"
)

// ceiling is the limit of one resource in a queue.
type ceiling struct {
	name  corev1.ResourceName
	limit int64 // in the unit of fit.Quantity
	path  []string
}

// ceilings are the hard limits of a queue, device first.
func ceilings(kind schema.GroupKind, q *unstructured.Unstructured) []ceiling {
	f := gang.Fields{Object: q}
	var all []ceiling
	if kind == kai.QueueKind() {
		// KAI counts GPUs whole; -1 is no limit.
		if gpu := f.Map("spec", "resources", "gpu"); gpu != nil {
			limit := resourceNumber(gpu["limit"])
			if limit >= 0 {
				all = append(all, ceiling{name: "nvidia.com/gpu", limit: limit, path: []string{"spec", "resources", "gpu", "limit"}})
			}
		}
		return all
	}
	list := f.Resources("spec", "capability")
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		if demand.IsGPU(a) != demand.IsGPU(b) {
			if demand.IsGPU(a) {
				return -1
			}
			return 1
		}
		return compareNames(a, b)
	})
	for _, name := range names {
		all = append(all, ceiling{name: name, limit: fit.Amount(name, list[name]), path: []string{"spec", "capability", string(name)}})
	}
	return all
}

func compareNames(a, b corev1.ResourceName) int {
	if a < b {
		return -1
	}
	return 1
}

func resourceNumber(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return -1
}

// needs is what the members that the gang cannot do without ask for together.
func (c *climb) needs() corev1.ResourceList {
	return whatif.Needs(c.g.Roles, min(c.g.Min, c.g.Total()))
}

// share is what one gang uses of a queue.
type share struct {
	job    string
	amount int64
}

// capability compares what the gang needs with what each queue from its own to the root allows.
func (c *climb) capability(kind schema.GroupKind, q *unstructured.Unstructured) {
	if c.admitted() {
		return
	}
	need := c.needs()
	for range 8 { // queues do not nest deeper; a cycle must not hang
		for _, limit := range ceilings(kind, q) {
			want := fit.Amount(limit.name, need[limit.name])
			if want == 0 {
				continue
			}
			shares := c.shares(kind, q.GetName(), limit.name)
			var used int64
			for _, s := range shares {
				used += s.amount
			}
			if used+want > limit.limit {
				c.add(*c.overQueue(kind, q, limit, want, used, shares))
				return
			}
		}
		parent := parentQueue(q)
		i := slices.IndexFunc(c.w.Snap.Custom[kind], func(u *unstructured.Unstructured) bool { return u.GetName() == parent })
		if parent == "" || i < 0 {
			return
		}
		q = c.w.Snap.Custom[kind][i]
	}
}

// admitted reports whether the gang has passed its queue: what it holds is counted already.
func (c *climb) admitted() bool {
	d := c.g.Decl
	return d != nil && d.Key.Dialect == gang.Volcano && (d.Phase == volcano.PhaseInqueue || d.Phase == "Running")
}

func parentQueue(q *unstructured.Unstructured) string {
	f := gang.Fields{Object: q}
	if parent := f.String("spec", "parent"); parent != "" {
		return parent
	}
	return f.String("spec", "parentQueue")
}

// shares are what other gangs use of a queue and of the queues below it: what their bound pods are charged, or what is
// reserved for them if that is more.
func (c *climb) shares(kind schema.GroupKind, queue string, name corev1.ResourceName) []share {
	inside := map[string]bool{queue: true}
	for range 8 {
		for _, q := range c.w.Snap.Custom[kind] {
			if inside[parentQueue(q)] {
				inside[q.GetName()] = true
			}
		}
	}
	var all []share
	for _, d := range c.w.Groups() {
		if d.Kind.Group != kind.Group || !inside[d.Queue] || c.g.Decl != nil && d.Key == c.g.Decl.Key {
			continue
		}
		var amount int64
		for _, pod := range c.w.GroupPods(d) {
			if fit.Holds(pod) {
				amount += fit.Amount(name, fit.Request(pod)[name])
			}
		}
		if d.Phase == volcano.PhaseInqueue {
			amount = max(amount, fit.Amount(name, d.MinResources[name]))
		}
		if amount > 0 {
			all = append(all, share{d.Key.Namespace + "/" + d.Key.Name, amount})
		}
	}
	return all
}

func (c *climb) overQueue(kind schema.GroupKind, q *unstructured.Unstructured, limit ceiling, want, used int64, shares []share) *Finding {
	name := limit.name
	text := func(n int64) string { return phrase.Quantity(name, n) }
	var f *Finding
	if want > limit.limit {
		f = found(answer.StageQueue, answer.QueueTooSmall, answer.Blocked, answer.User, "queue %s allows %s in all, and the gang needs %s",
			q.GetName(), phrase.Amount(name, limit.limit), text(want)).never()
	} else {
		f = found(answer.StageQueue, answer.QueueQuota, answer.Waiting, answer.Nobody, "queue %s has %s of %s left, and the gang needs %s: %s are used",
			q.GetName(), text(limit.limit-used), phrase.Amount(name, limit.limit), text(want), text(used))
	}
	f.see(q.GetAPIVersion(), q.GetKind(), q, "."+limit.path[0]+"."+limit.path[1]).
		detail("requested %s, used %s, limit %s (%s): together %s", text(want), text(used), text(limit.limit), name, text(used+want)).
		fact("queue", q.GetName()).fact("resource", string(name)).fact("requested", want).fact("used", used).fact("limit", limit.limit).fact("available", limit.limit-used)
	for _, s := range shares {
		f.detail("%s uses %s", s.job, text(s.amount))
	}
	total := used + want
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of queue %s to %s", name, q.GetName(), text(total)),
			Change:  map[string]any{"limit": text(total), "object": "Queue/" + q.GetName(), "resource": string(name)},
			Command: command.JSONPatch("", "queue."+kind.Group, q.GetName(), command.Patch{Op: "replace", Path: pointer(limit.path), Value: text(total)})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, kind, "", q.GetName(), func(u *unstructured.Unstructured) {
				if kind == kai.QueueKind() {
					whatif.Set(u, total, limit.path...)
					return
				}
				whatif.Set(u, text(total), limit.path...)
			})
		},
	})
}

// pointer is a path as a JSON pointer.
func pointer(path []string) string {
	p := ""
	for _, part := range path {
		p += "/" + command.Escape(part)
	}
	return p
}

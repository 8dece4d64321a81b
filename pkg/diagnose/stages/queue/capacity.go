package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// needs is what the members that the gang cannot do without request together, but for those that have done their work. The replicas of a Job are without those, and each of
// its waves is as many as the first.
func needs(c *stage.Context) corev1.ResourceList {
	roles, least := slices.Clone(c.Gang.Roles), min(c.Gang.Min, c.Gang.Total())
	if c.Gang.BatchJob != nil {
		return whatif.Needs(roles, min(least, roles[0].Replicas))
	}
	for _, m := range c.Gang.Members {
		i := slices.IndexFunc(roles, func(r gang.Role) bool { return r.Name == m.Role })
		if m.State == gang.Succeeded && i >= 0 {
			roles[i].Replicas--
			least--
		}
	}
	return whatif.Needs(roles, max(0, least))
}

// share is what one gang uses of a queue.
type share struct {
	job    string
	amount int64
}

// capacity compares what the gang needs, less what its pods on nodes use, with what each queue from its own to the root allows.
func capacity(c *stage.Context, out *stage.Result, kind schema.GroupKind, q *unstructured.Unstructured) {
	need := needs(c)
	for range 8 { // queues do not nest deeper; a cycle must not hang
		for _, limit := range ceilings(kind, q) {
			own := held(c.Gang.ExistingPods(), limit.name)
			want := request.Amount(limit.name, need[limit.name]) - own
			if want <= 0 || admitted(c, limit.name) || limit.firm && (c.Gang.Decl == nil || preemptible(c, *c.Gang.Decl)) {
				continue
			}
			shares := shares(c, kind, q.GetName(), limit)
			used := own
			for _, s := range shares {
				used += s.amount
			}
			if used+want > limit.limit {
				out.Add(overQueue(kind, q, limit, want, own, used, shares))
				return
			}
		}
		parent := parentQueue(q)
		i := slices.IndexFunc(c.View.Snap.Custom[kind], func(u *unstructured.Unstructured) bool { return u.GetName() == parent })
		if parent == "" || i < 0 {
			return
		}
		q = c.View.Snap.Custom[kind][i]
	}
}

// admitted reports whether the gang has passed its queue with a resource, which is reserved for it. Volcano admits a gang with what its minResources have; of
// all else it compares each pod with the queue when it allocates.
func admitted(c *stage.Context, name corev1.ResourceName) bool {
	d := c.Gang.Decl
	return d != nil && d.Key.Dialect == gang.Volcano && (d.Phase == volcano.PhaseInqueue || d.Phase == "Running") && request.Amount(name, d.MinResources[name]) > 0
}

// held is the amount of a resource that those of some pods request that have nodes.
func held(pods []*corev1.Pod, name corev1.ResourceName) (amount int64) {
	for _, pod := range pods {
		if placement.Holds(pod) {
			amount += request.Amount(name, request.Of(pod)[name])
		}
	}
	return amount
}

// shares are what other gangs use of a queue and of the queues below it: what their bound pods are charged, or what is
// reserved for them if that is more.
func shares(c *stage.Context, kind schema.GroupKind, queue string, limit ceiling) []share {
	name := limit.name
	inside := map[string]bool{queue: true}
	for range 8 {
		for _, q := range c.View.Snap.Custom[kind] {
			if inside[parentQueue(q)] {
				inside[q.GetName()] = true
			}
		}
	}
	var all []share
	for _, d := range c.View.Groups() {
		if d.Kind.Group != kind.Group || !inside[d.Queue] || c.Gang.Decl != nil && d.Key == c.Gang.Decl.Key {
			continue
		}
		if limit.firm && preemptible(c, d) {
			continue
		}
		amount := held(c.View.GroupPods(d), name)
		if d.Phase == volcano.PhaseInqueue {
			amount = max(amount, request.Amount(name, d.MinResources[name]))
		}
		if amount > 0 {
			all = append(all, share{c.GroupName(d), amount})
		}
	}
	return all
}

// overQueue is the finding that a gang wants more of a queue than is left. Used is what is used of it, of which own by the gang itself.
func overQueue(kind schema.GroupKind, q *unstructured.Unstructured, limit ceiling, want, own, used int64, shares []share) *stage.Finding {
	name := limit.name
	text := func(n int64) string { return phrase.Quantity(name, n) }
	firm := ""
	if limit.firm {
		firm = " for gangs that cannot be preempted"
	}
	var f *stage.Finding
	if own+want > limit.limit {
		f = stage.Found(answer.QueueTooSmall, "queue %s allows %s in all%s, and the gang needs %s",
			q.GetName(), phrase.Amount(name, limit.limit), firm, text(own+want))
	} else {
		f = stage.Found(answer.QueueQuota, "queue %s has %s of %s left%s, and the gang needs %s: %s are used",
			q.GetName(), text(limit.limit-used), phrase.Amount(name, limit.limit), firm, text(want), text(used))
	}
	if limit.firm {
		f.Detail("a gang that may be preempted can use more than the queue's quota")
	}
	f.See(q.GetAPIVersion(), q.GetKind(), q, "."+strings.Join(limit.path, ".")).
		Detail("requested %s, used %s, limit %s (%s): together %s", text(want), text(used), text(limit.limit), name, text(used+want)).
		Fact("queue", q.GetName()).Fact("resource", string(name)).Fact("requested", want).Fact("used", used).Fact("limit", limit.limit).Fact("available", limit.limit-used)
	for _, s := range shares {
		f.Detail("%s uses %s", s.job, text(s.amount))
	}
	if own > 0 {
		f.Detail("the gang itself uses %s", text(own))
	}
	total := used + want
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of queue %s to %s", name, q.GetName(), text(total)),
			Change:  map[string]any{"limit": text(total), "object": "Queue/" + q.GetName(), "resource": string(name)},
			Command: command.JSONPatch("", "queue."+kind.Group, q.GetName(), command.Patch{Op: "replace", Path: command.Pointer(limit.path), Value: limit.raw(total)})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, kind, "", q.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, limit.raw(total), limit.path...) })
		},
	})
}

// ceiling is the limit of one resource in a queue.
type ceiling struct {
	name  corev1.ResourceName
	limit int64 // in the unit of request.Quantity
	path  []string
	// raw is an amount as the field writes it.
	raw func(int64) any
	// firm is true for a limit that only gangs feel that cannot be preempted.
	firm bool
}

// kaiAmounts are the resources in a queue of KAI: what they are called there, and how much one unit of the field is.
var kaiAmounts = []struct {
	field string
	name  corev1.ResourceName
	unit  int64
}{{"gpu", "nvidia.com/gpu", 1}, {"cpu", corev1.ResourceCPU, 1}, {"memory", corev1.ResourceMemory, 1e6}}

// ceilings are the hard limits of a queue, device first.
func ceilings(kind schema.GroupKind, q *unstructured.Unstructured) []ceiling {
	f := gang.Fields{Object: q}
	var all []ceiling
	if kind == kai.QueueKind() {
		for _, r := range kaiAmounts {
			for _, field := range []string{"limit", "quota"} {
				// -1, or nothing, is no limit.
				if n := resourceNumber(f.Map("spec", "resources", r.field)[field]); n >= 0 {
					all = append(all, ceiling{name: r.name, limit: n * r.unit, path: []string{"spec", "resources", r.field, field}, firm: field == "quota",
						raw: func(amount int64) any { return (amount + r.unit - 1) / r.unit }})
				}
			}
		}
		return all
	}
	list := f.Resources("spec", "capability")
	for _, name := range slices.SortedFunc(maps.Keys(list), devicesFirst) {
		all = append(all, ceiling{name: name, limit: request.Amount(name, list[name]), path: []string{"spec", "capability", string(name)},
			raw: func(amount int64) any { return phrase.Quantity(name, amount) }})
	}
	return all
}

// devicesFirst orders resources: what users look for comes first.
func devicesFirst(a, b corev1.ResourceName) int {
	if request.IsGPU(a) != request.IsGPU(b) {
		if request.IsGPU(a) {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
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

func parentQueue(q *unstructured.Unstructured) string {
	f := gang.Fields{Object: q}
	if parent := f.String("spec", "parent"); parent != "" {
		return parent
	}
	return f.String("spec", "parentQueue")
}

// preemptible reports whether KAI may preempt a gang: by its object, or else by its priority.
func preemptible(c *stage.Context, d gang.Declaration) bool {
	if u := c.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name); u != nil {
		f := gang.Fields{Object: u}
		if text := f.String("spec", "preemptibility"); text != "" {
			return text == "preemptible"
		}
	}
	return queueing.PriorityOf(c.View, d.PriorityClass) < 100
}

package stages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/placement"
)

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
			want := placement.Amount(limit.name, need[limit.name])
			if want == 0 || limit.firm && (c.g.Decl == nil || c.preemptible(*c.g.Decl)) {
				continue
			}
			shares := c.shares(kind, q.GetName(), limit)
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

// shares are what other gangs use of a queue and of the queues below it: what their bound pods are charged, or what is
// reserved for them if that is more.
func (c *climb) shares(kind schema.GroupKind, queue string, limit ceiling) []share {
	name := limit.name
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
		if limit.firm && c.preemptible(d) {
			continue
		}
		var amount int64
		for _, pod := range c.w.GroupPods(d) {
			if placement.Holds(pod) {
				amount += placement.Amount(name, placement.Request(pod)[name])
			}
		}
		if d.Phase == volcano.PhaseInqueue {
			amount = max(amount, placement.Amount(name, d.MinResources[name]))
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
	firm := ""
	if limit.firm {
		firm = " for gangs that cannot be preempted"
	}
	var f *Finding
	if want > limit.limit {
		f = found(answer.StageQueue, answer.QueueTooSmall, answer.Blocked, answer.User, "queue %s allows %s in all%s, and the gang needs %s",
			q.GetName(), phrase.Amount(name, limit.limit), firm, text(want)).never()
	} else {
		f = found(answer.StageQueue, answer.QueueQuota, answer.Waiting, answer.Nobody, "queue %s has %s of %s left%s, and the gang needs %s: %s are used",
			q.GetName(), text(limit.limit-used), phrase.Amount(name, limit.limit), firm, text(want), text(used))
	}
	if limit.firm {
		f.detail("a gang that may be preempted can use more than the queue's quota")
	}
	f.see(q.GetAPIVersion(), q.GetKind(), q, "."+strings.Join(limit.path, ".")).
		detail("requested %s, used %s, limit %s (%s): together %s", text(want), text(used), text(limit.limit), name, text(used+want)).
		fact("queue", q.GetName()).fact("resource", string(name)).fact("requested", want).fact("used", used).fact("limit", limit.limit).fact("available", limit.limit-used)
	for _, s := range shares {
		f.detail("%s uses %s", s.job, text(s.amount))
	}
	total := used + want
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of queue %s to %s", name, q.GetName(), text(total)),
			Change:  map[string]any{"limit": text(total), "object": "Queue/" + q.GetName(), "resource": string(name)},
			Command: command.JSONPatch("", "queue."+kind.Group, q.GetName(), command.Patch{Op: "replace", Path: pointer(limit.path), Value: limit.raw(total)})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, kind, "", q.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, limit.raw(total), limit.path...) })
		},
	})
}

// queueSays: by the numbers the queue has room, but it has not admitted the gang, and its scheduler says that it is short of
// something. It counts more than capabilities: shares by weight, what is guaranteed to others.
func (c *climb) queueSays(queue string) {
	d := c.g.Decl
	if c.w.Assumed {
		return
	}
	for _, e := range c.w.Events("PodGroup", d.Key.Namespace, d.Key.Name) {
		if shortQueue.MatchString(e.Message) && c.w.Age(e.Last) <= freshWords {
			c.add(*found(answer.StageQueue, answer.QueueQuota, answer.Waiting, answer.Nobody, "queue %s has not admitted it, the scheduler said %s ago: %s", queue, phrase.Age(c.w.Age(e.Last)), e.Message).
				fact("queue", queue).since(e.First))
			c.Unmodelled = append(c.Unmodelled, "shares of queues by weight and what is guaranteed to others")
			return
		}
	}
}

// freshWords is how old what a scheduler said of a queue may be to count.
const freshWords = 2 * time.Minute

// shortQueue is how Volcano says that a queue is short.
var shortQueue = regexp.MustCompile(`overused|queue resource quota insufficient`)

// pointer is a path as a JSON pointer.
func pointer(path []string) string {
	p := ""
	for _, part := range path {
		p += "/" + command.Escape(part)
	}
	return p
}

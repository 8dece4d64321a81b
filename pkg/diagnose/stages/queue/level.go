package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// wholeCluster is what the queues share below which there is none.
const wholeCluster = "the cluster"

// level is one resource among the queues of Volcano below the same queue. Volcano keeps what a queue is guaranteed from all others, used or
// not (realCapability of its plugins proportion and capacity).
type level struct {
	name corev1.ResourceName
	// total is what they share, of is where it comes from.
	total int64
	of    string
	// own is what the queue itself is guaranteed, others what the others are, the most first.
	own    int64
	others []guarantee
}

// guarantee is what a queue is guaranteed of a resource.
type guarantee struct {
	queue  *unstructured.Unstructured
	amount int64
}

// left is what the queue can have.
func (l level) left() int64 { return request.Sum(max(0, l.total-request.Sum(l.own, l.kept())), l.own) }

// kept is what the others are guaranteed.
func (l level) kept() (sum int64) {
	for _, g := range l.others {
		sum = request.Sum(sum, g.amount)
	}
	return sum
}

// names are those of the queues that are guaranteed something.
func (l level) names() string {
	return phrase.NamesOf(l.others, func(g guarantee) string { return g.queue.GetName() })
}

// levels are the resources of the level of a queue that bound what the queue can have: of which others are guaranteed some, or of which the gang's minResources state
// more than its members request. Those are left out of which it is not known how much there is, or of which the members request more than that: that is no matter of
// queues.
func levels(c *stage.Context, q *unstructured.Unstructured, need corev1.ResourceList) (all []level) {
	if component.Ours(c.View, c.Gang.Scheduler) {
		return nil // it keeps nothing for queues
	}
	queues := c.View.Snap.Custom[volcano.QueueKind()]
	names := map[corev1.ResourceName]bool{}
	for _, u := range queues {
		for name := range guaranteedTo(u) {
			names[name] = true
		}
	}
	if queueing.Gated(c.Gang) {
		for name, stated := range c.Gang.Decl.MinResources {
			if needed := need[name]; stated.Cmp(needed) > 0 {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !counted(name) {
			continue
		}
		l := level{name: name, own: request.Amount(name, guaranteedTo(q)[name])}
		var known bool
		if l.total, l.of, known = above(c, q, name); !known || request.Amount(name, need[name]) > l.total {
			continue
		}
		for _, u := range queues {
			if amount := request.Amount(name, guaranteedTo(u)[name]); amount > 0 && u.GetName() != q.GetName() && volcanoParent(u) == volcanoParent(q) {
				l.others = append(l.others, guarantee{u, amount})
			}
		}
		slices.SortStableFunc(l.others, func(a, b guarantee) int { return int(min(1, max(-1, b.amount-a.amount))) })
		all = append(all, l)
	}
	return all
}

// above is how much of a resource the queues of a level share: the capability of the nearest queue above that has one, or all that the nodes have. Volcano
// does not bound what is above all queues of a hierarchy.
func above(c *stage.Context, q *unstructured.Unstructured, name corev1.ResourceName) (amount int64, of string, known bool) {
	queues := c.View.Snap.Custom[volcano.QueueKind()]
	for range queueing.MaxDepth {
		parent := volcanoParent(q)
		i := slices.IndexFunc(queues, func(u *unstructured.Unstructured) bool { return u.GetName() == parent })
		if i < 0 || parent == volcano.RootQueue {
			break
		}
		q = queues[i]
		f := gang.Fields{Object: q}
		if limit, ok := f.Resources("spec", "capability")[name]; ok {
			return request.Amount(name, limit), "queue " + parent, true
		}
	}
	if slices.ContainsFunc(queues, func(u *unstructured.Unstructured) bool { return volcanoParent(u) != volcano.RootQueue }) {
		return 0, "", false
	}
	nodes := c.View.Cluster().Nodes()
	for _, n := range nodes {
		amount = request.Sum(amount, request.Amount(name, n.Status.Allocatable[name]))
	}
	return amount, wholeCluster, len(nodes) > 0
}

func guaranteedTo(q *unstructured.Unstructured) corev1.ResourceList {
	f := gang.Fields{Object: q}
	return f.Resources("spec", "guarantee", "resource")
}

func volcanoParent(q *unstructured.Unstructured) string {
	return cmp.Or(queueing.Parent(q), volcano.RootQueue)
}

// why explains the limit in a sentence.
func (l level) why() string {
	if len(l.others) == 0 {
		return ", as many as " + l.of + " has"
	}
	return fmt.Sprintf(", as of the %s of %s %s are guaranteed to %s", phrase.Amount(l.name, l.total), l.of, phrase.Quantity(l.name, l.kept()), l.names())
}

// fixes lower the largest guarantee so that so much is left for the queue; none do where one alone is not enough.
func (l level) fixes(total int64) []stage.Fix {
	if len(l.others) == 0 {
		return nil
	}
	lower := l.total - request.Sum(total, l.kept()-l.others[0].amount) // all guarantees together may be more than there is
	if lower < 0 || lower >= l.others[0].amount {
		return nil
	}
	queue, path := l.others[0].queue, []string{"spec", "guarantee", "resource", string(l.name)}
	text := phrase.Quantity(l.name, lower)
	return []stage.Fix{{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("lower the guarantee of %s of queue %s to %s", l.name, queue.GetName(), text),
			Change:  map[string]any{"guarantee": text, "object": "Queue/" + queue.GetName(), "resource": string(l.name)},
			Command: command.JSONPatch("", "queue."+volcano.Group, queue.GetName(), command.Patch{Op: "replace", Path: command.Pointer(path), Value: text})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, volcano.QueueKind(), "", queue.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, text, path...) })
		},
	}}
}

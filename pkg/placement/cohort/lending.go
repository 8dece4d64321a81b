package cohort

import (
	corev1 "k8s.io/api/core/v1"
)

// Withheld is what a queue has of a resource in a flavor that nobody uses, and that it does not lend to the other queues of its cohort.
type Withheld struct {
	Queue string
	// Idle is how much that is, and Lends the limit by which it does not lend it. Path is that of the limit in the ClusterQueue.
	Idle, Lends int64
	Path        []any
}

// Withheld are those of the queues from which another one could borrow.
func (t *Tree) Withheld(queue, flavor string, name corev1.ResourceName) (all []Withheld) {
	at := flavorResource{flavor, name}
	for _, lender := range t.Lenders(queue) {
		n := t.nodes[lender]
		limit := n.quotas[at].lendingLimit
		_, kept := n.quota(at)
		if lender == queue || limit == nil || kept <= n.usage[at] {
			continue
		}
		w := Withheld{Queue: lender, Idle: kept - n.usage[at], Lends: *limit}
		each(t.queues[lender], func(other flavorResource, _ int, _ map[string]any, path []any) {
			if other == at {
				w.Path = append(append([]any{}, path[:len(path)-1]...), "lendingLimit")
			}
		})
		all = append(all, w)
	}
	return all
}

// Borrowing is what a queue could use of a resource in a flavor with a higher borrowing limit.
type Borrowing struct {
	// Limit is how much it may borrow as it is. Path is that of the limit in the ClusterQueue.
	Limit int64
	Path  []any
	// Cohort is all that its cohort has, Idle what nobody uses of that; Left is what is left of the queue's own quota, less what it borrows.
	Cohort, Idle, Left int64
}

// Least is the limit with which the queue could use an amount now; enough is false if it could not with any.
func (b Borrowing) Least(amount int64) (limit int64, enough bool) {
	return amount - b.Left, amount <= b.Idle
}

// Borrowing is how a queue borrows; ok is false for one that no limit of its own keeps from more.
func (t *Tree) Borrowing(queue, flavor string, name corev1.ResourceName) (b Borrowing, ok bool) {
	at, n := flavorResource{flavor, name}, t.nodes[queue]
	if n == nil || n.parent == nil || n.quotas[at].borrowingLimit == nil {
		return b, false
	}
	subtree, local := n.quota(at)
	used := n.usage[at]
	b = Borrowing{Limit: *n.quotas[at].borrowingLimit, Cohort: local + n.parent.potential(at), Idle: max(0, local-used) + n.parent.available(at), Left: subtree - used}
	each(t.queues[queue], func(other flavorResource, _ int, _ map[string]any, path []any) {
		if other == at {
			b.Path = append(append([]any{}, path[:len(path)-1]...), "borrowingLimit")
		}
	})
	return b, true
}

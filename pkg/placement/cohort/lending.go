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

package placement

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Shortage is nodes that have too little left of the same resources for one pod, and would take it otherwise.
type Shortage struct {
	// Nodes are the names of the nodes, in order.
	Nodes []string
	// Short are the resources, each as it is on the node that has most of it left.
	Short []Violation
}

// Of reports whether a resource is one of those that are short.
func (s Shortage) Of(name corev1.ResourceName) bool {
	for _, v := range s.Short {
		if v.Resource == name {
			return true
		}
	}
	return false
}

// Shortages groups the nodes that nothing but what is in use keeps from taking the pod, by what is short there, in the order of their first nodes. Constraints to
// ignore do not count. A node that is too small even if it is empty is no choice, and left out.
func (m Matrix) Shortages(ignore Constraints) (all []Shortage) {
	at := map[string]int{}
	for _, row := range m.Rows {
		short, key := row.shortages(ignore)
		if len(short) == 0 {
			continue
		}
		i, known := at[key]
		if !known {
			i, at[key] = len(all), len(all)
			all = append(all, Shortage{Short: short})
		}
		all[i].Nodes = append(all[i].Nodes, row.Node)
		for j, v := range short {
			if v.Available > all[i].Short[j].Available {
				all[i].Short[j] = v
			}
		}
	}
	return all
}

// shortages are the amounts that are short on a node, and a key that is equal for the same resources; none where something else rejects the pod.
func (r Row) shortages(ignore Constraints) (short []Violation, key string) {
	var names []string
	for _, v := range r.Violations {
		if ignore.Has(v.Constraint) {
			continue
		}
		if _, amount := v.Constraint.ResourceName(); !amount || v.Never() {
			return nil, ""
		}
		short, names = append(short, v), append(names, string(v.Resource))
	}
	return short, strings.Join(names, between)
}

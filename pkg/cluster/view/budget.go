package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/gangctl/gangctl/pkg/placement/disruption"
)

// Budgets are the PodDisruptionBudgets that cover a pod, ordered by name.
func (w *View) Budgets(pod *corev1.Pod) (all []disruption.Budget) {
	for _, b := range w.budgets().counting[pod.Namespace] {
		if b.Covers(pod) {
			all = append(all, b)
		}
	}
	return all
}

// MoreBudgets reports whether a namespace has PodDisruptionBudgets that are not read. Its pods may have budgets that are not known.
func (w *View) MoreBudgets(namespace string) bool { return w.budgets().more[namespace] }

// budgetIndex is the budgets by namespace, and which namespaces have more.
type budgetIndex struct {
	counting map[string][]disruption.Budget
	more     map[string]bool
}

func (w *View) budgets() budgetIndex {
	type budgets struct{}
	return Once(w, budgets{}, func() budgetIndex {
		written := map[string][]*policyv1.PodDisruptionBudget{}
		for _, b := range w.Snap.DisruptionBudgets {
			written[b.Namespace] = append(written[b.Namespace], b)
		}
		index := budgetIndex{map[string][]disruption.Budget{}, map[string]bool{}}
		for namespace, all := range written {
			index.counting[namespace], index.more[namespace] = disruption.Counting(all)
		}
		return index
	})
}

// Exceeded is a PodDisruptionBudget, and how many of some pods it covers, which are more than it lets go at once.
type Exceeded struct {
	disruption.Budget
	Covered int32
}

// ExceededBudgets are the PodDisruptionBudgets that do not let all of some pods go at once, in the order of these.
func (w *View) ExceededBudgets(pods []*corev1.Pod) (all []Exceeded) {
	for _, p := range pods {
		for _, b := range w.Budgets(p) {
			at := slices.IndexFunc(all, func(e Exceeded) bool { return e.PodDisruptionBudget == b.PodDisruptionBudget })
			if at < 0 {
				at, all = len(all), append(all, Exceeded{b, 0})
			}
			all[at].Covered++
		}
	}
	return slices.DeleteFunc(all, func(e Exceeded) bool { return e.Covered <= e.Allows() })
}

package view

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// maxBudgets is how many PodDisruptionBudgets of a namespace count, the first by name: tenants decide how many there are.
const maxBudgets = 100

// maxTerms is by how many labels and values a budget may select that is read, as in the scheduler.
const maxTerms = 100

// budget is a PodDisruptionBudget whose selector is parsed.
type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// Budgets are the PodDisruptionBudgets that cover a pod, ordered by name.
func (w *View) Budgets(pod *corev1.Pod) (all []*policyv1.PodDisruptionBudget) {
	for _, b := range w.budgets().read[pod.Namespace] {
		if b.selector.Matches(labels.Set(pod.Labels)) {
			all = append(all, b.PodDisruptionBudget)
		}
	}
	return all
}

// MoreBudgets reports whether a namespace has PodDisruptionBudgets that are not read: there are too many, or one selects by too much. Its pods may have budgets that are
// not known.
func (w *View) MoreBudgets(namespace string) bool { return w.budgets().more[namespace] }

// budgetIndex is the budgets by namespace, and which namespaces have more.
type budgetIndex struct {
	read map[string][]budget
	more map[string]bool
}

func (w *View) budgets() budgetIndex {
	type budgets struct{}
	return Once(w, budgets{}, w.indexBudgets)
}

// indexBudgets reads the budgets. One without a selector, or whose selector cannot be read, covers no pod.
func (w *View) indexBudgets() budgetIndex {
	all, more := map[string][]budget{}, map[string]bool{}
	for _, b := range w.Snap.DisruptionBudgets {
		if request.SelectorTerms(b.Spec.Selector) > maxTerms {
			more[b.Namespace] = true
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Spec.Selector != nil {
			all[b.Namespace] = append(all[b.Namespace], budget{b, selector})
		}
	}
	for namespace, of := range all {
		slices.SortFunc(of, func(a, b budget) int { return cmp.Compare(a.Name, b.Name) })
		if len(of) > maxBudgets {
			all[namespace], more[namespace] = of[:maxBudgets], true
		}
	}
	return budgetIndex{all, more}
}

// Exceeded is a PodDisruptionBudget, and how many of some pods it covers, which are more than it lets go at once.
type Exceeded struct {
	*policyv1.PodDisruptionBudget
	Covered int32
}

// ExceededBudgets are the PodDisruptionBudgets that do not let all of some pods go at once, in the order of these.
func (w *View) ExceededBudgets(pods []*corev1.Pod) (all []Exceeded) {
	for _, p := range pods {
		for _, b := range w.Budgets(p) {
			at := slices.IndexFunc(all, func(e Exceeded) bool { return e.PodDisruptionBudget == b })
			if at < 0 {
				at, all = len(all), append(all, Exceeded{b, 0})
			}
			all[at].Covered++
		}
	}
	return slices.DeleteFunc(all, func(e Exceeded) bool { return e.Covered <= max(0, e.Status.DisruptionsAllowed) })
}

// Package disruption is which PodDisruptionBudgets count, and for which pods: the scheduler preempts by it, and answers explain that by it.
package disruption

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Users write budgets, and while victims are looked for nothing else is scheduled. Of a namespace so many budgets count, the first by name, and those of them that select by no
// more labels and values.
const (
	maxBudgets = 100
	maxTerms   = 100
)

// Budget is a PodDisruptionBudget whose selector is parsed.
type Budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// Counting are those of the budgets of one namespace that count, by name. One without a selector, or whose selector cannot be read, covers no pod; more reports whether there are
// others that may.
func Counting(all []*policyv1.PodDisruptionBudget) (counting []Budget, more bool) {
	all = slices.SortedFunc(slices.Values(all), func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
	more = len(all) > maxBudgets
	for _, b := range all[:min(len(all), maxBudgets)] {
		if request.SelectorTerms(b.Spec.Selector) > maxTerms {
			more = true
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && b.Spec.Selector != nil {
			counting = append(counting, Budget{b, selector})
		}
	}
	return counting, more
}

// Covers reports whether an eviction of a pod of the namespace counts. One of which the budget knows already has been counted.
func (b Budget) Covers(pod *corev1.Pod) bool {
	_, known := b.Status.DisruptedPods[pod.Name]
	return !known && b.selector.Matches(labels.Set(pod.Labels))
}

// SelectsAll reports whether the budget is about all pods of the namespace. It counts for evictions then, and not for preemption: kube-scheduler leaves it out.
func (b Budget) SelectsAll() bool { return b.selector.Empty() }

// Allows is how many of its pods may go at once.
func (b Budget) Allows() int32 { return max(0, b.Status.DisruptionsAllowed) }

package belowmin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budgeted tells whether the PodDisruptionBudgets allow that all of these pods are
// evicted. A dry run asks about each alone, and a budget for three says yes to
// every one of eight.
func (c *Controller) budgeted(ctx context.Context, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	namespace := pods[0].Namespace
	list, err := c.Client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list PodDisruptionBudgets in namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		budget := &list.Items[i]
		if n := guarded(budget, pods); n > budget.Status.DisruptionsAllowed {
			return apierrors.NewTooManyRequests(fmt.Sprintf("PodDisruptionBudget %s/%s allows %d of %d evictions",
				namespace, budget.Name, budget.Status.DisruptionsAllowed, n), 0)
		}
	}
	return nil
}

// guarded is how many of the pods count against a budget when they are evicted:
// those that are ready. About others the API server is asked one by one.
func guarded(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (n int32) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return 0 // the API server does not understand it, either
	}
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) && ready(pod) {
			n++
		}
	}
	return n
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

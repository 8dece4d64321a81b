package reserve

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Waits returns the gang if it waits for places: all the members that it needs
// are there, none is held back by a gate, and the engine has found no place for
// one of them. Since when it does is read from its pods, so that a scheduler
// that takes over goes on counting. What its members ask for is not told yet.
func Waits(group *schedulingv1beta1.PodGroup, state fwk.PodGroupState) (Gang, bool) {
	g := Gang{Group: types.NamespacedName{Namespace: group.Namespace, Name: group.Name}}
	if policy := group.Spec.SchedulingPolicy.Gang; policy != nil {
		g.Members.MinMember = policy.MinCount
	}
	if group.Spec.Priority != nil {
		g.Priority = *group.Spec.Priority
	}
	for _, pod := range state.ScheduledPods() {
		g.Members.Bound = append(g.Members.Bound, pod.UID)
	}
	for _, pod := range state.UnscheduledPods() {
		if len(pod.Spec.SchedulingGates) > 0 || pod.DeletionTimestamp != nil {
			continue
		}
		g.Open = append(g.Open, pod)
		if t := refused(pod); !t.IsZero() && (g.Since.IsZero() || t.Before(g.Since)) {
			g.Since = t
		}
	}
	slices.SortFunc(g.Open, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	need, placed := int(g.Members.MinMember), len(g.Members.Bound)
	return g, !g.Since.IsZero() && placed < need && placed+len(g.Open) >= need
}

// refused is since when the engine has found no place for a pod; zero where it
// has not said so.
func refused(pod *corev1.Pod) time.Time {
	_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if condition == nil || condition.Status != corev1.ConditionFalse || condition.Reason != corev1.PodReasonUnschedulable {
		return time.Time{}
	}
	return condition.LastTransitionTime.Time
}

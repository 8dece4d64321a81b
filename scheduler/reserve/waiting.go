package reserve

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/fit"
)

// Roles says what waiting members ask for, those that are alike together.
type Roles func([]*corev1.Pod) ([]fit.Role, error)

// Waits returns the gang if it waits for places: all the members that it needs
// are there, none is held back by a gate, and the engine has found no place for
// one of them. Since when it does is read from its pods, so that a scheduler
// that takes over goes on counting.
func Waits(group *schedulingv1beta1.PodGroup, state fwk.PodGroupState, roles Roles) (Gang, bool) {
	var need int32
	if policy := group.Spec.SchedulingPolicy.Gang; policy != nil {
		need = policy.MinCount
	}
	placed := state.ScheduledPods()
	var open []*corev1.Pod
	var since time.Time
	for _, pod := range state.UnscheduledPods() {
		if len(pod.Spec.SchedulingGates) > 0 || pod.DeletionTimestamp != nil {
			continue
		}
		open = append(open, pod)
		if t := refused(pod); !t.IsZero() && (since.IsZero() || t.Before(since)) {
			since = t
		}
	}
	if since.IsZero() || len(placed) >= int(need) || len(placed)+len(open) < int(need) {
		return Gang{}, false
	}
	members, err := roles(open)
	if err != nil {
		return Gang{}, false
	}
	g := Gang{
		Group: types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, Since: since,
		Members: fit.Gang{Roles: members, MinMember: need},
	}
	if group.Spec.Priority != nil {
		g.Priority = *group.Spec.Priority
	}
	for _, pod := range placed {
		g.Members.Bound = append(g.Members.Bound, pod.UID)
	}
	return g, true
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

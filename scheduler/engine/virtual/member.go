package virtual

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GroupOf returns the virtual PodGroup that a pod, as the engine sees it,
// belongs to; ok is false for a pod on its own.
func GroupOf(pod *corev1.Pod) (group types.NamespacedName, ok bool) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: *pod.Spec.SchedulingGroup.PodGroupName}, true
}

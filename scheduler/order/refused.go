package order

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Refused is why a pod has no node, and since when by its own condition: that is the time when it had none for the first time,
// whatever the reason was, and some API servers leave it out for pods that begin with a gate. The reason is empty where no scheduler
// refused it.
func Refused(pod *corev1.Pod) (reason string, since time.Time) {
	_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if condition == nil || condition.Status != corev1.ConditionFalse {
		return "", time.Time{}
	}
	return condition.Reason, condition.LastTransitionTime.Time
}

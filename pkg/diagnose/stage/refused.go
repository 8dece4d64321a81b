package stage

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// NodeRefusal is why a kubelet did not take a pod at all, by the reason of its status or what that begins with; "" if it did. Such a pod never ran.
func NodeRefusal(pod *corev1.Pod) string {
	reasons := []string{"UnexpectedAdmissionError", "OutOf", "TopologyAffinityError", "SMTAlignmentError", "NodeAffinity", "NodeName", "NodePorts", "NodeShutdown", "Taint", "PodOS", "InvalidNodeInfo",
		"VolumeAttachmentLimitExceeded", "PodLevelResources", "UnsupportedPodLevelResources", "PodResourcesNotSupported"}
	i := slices.IndexFunc(reasons, func(reason string) bool { return strings.HasPrefix(pod.Status.Reason, reason) })
	if pod.Status.Phase != corev1.PodFailed || i < 0 {
		return ""
	}
	return reasons[i]
}

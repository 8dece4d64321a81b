package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// DaemonSetPod reports whether a DaemonSet controls the pod; such pods stay indefinitely. Mirror pods of static manifests, owned by
// their Node, count too.
//
// Any user may write an owner, and his pods stay for it. What is written here is of no use for long: of pods that a DaemonSet controls
// that deletes those which it did not make, and a kubelet those which mirror none of its manifests.
func DaemonSetPod(p *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		return false
	}
	return gang.OwnerKind(ref) == (schema.GroupKind{Group: "apps", Kind: "DaemonSet"}) || StaticPod(p)
}

// StaticPod reports whether a pod mirrors a static manifest of its node.
func StaticPod(p *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || gang.OwnerKind(ref) != (schema.GroupKind{Kind: "Node"}) {
		return false
	}
	_, mirrors := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirrors
}

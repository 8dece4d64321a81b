package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memberUID begins the UIDs of pods that stand for members.
const memberUID = "fit/"

// member makes the pod of an assignment: like the role's pod, but bound.
func member(like *corev1.Pod, a Assignment) *corev1.Pod {
	p := *like
	p.Name = fmt.Sprintf("%s-%s-%d", like.Name, a.Role, a.Member)
	p.UID = types.UID(memberUID + like.Namespace + "/" + p.Name)
	p.Spec.NodeName = a.Node
	p.Status = corev1.PodStatus{}
	return &p
}

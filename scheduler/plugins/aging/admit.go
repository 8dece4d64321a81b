package aging

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Admits tells whether a pod that is not of the gang may run on a node beside
// the gang's reservation: it outranks the gang, or it leaves room, or it ends
// before the gang could start. running are the pods on the node at this moment,
// and group is the gang that a pod belongs to.
func (r *Reservation) Admits(pod *corev1.Pod, node *corev1.Node, running []*corev1.Pod, group func(*corev1.Pod) types.NamespacedName, now time.Time) bool {
	place, reserved := r.Nodes[node.Name]
	if !reserved || !r.binds(pod, now) {
		return true
	}
	for name, quantity := range charge(pod) {
		free := node.Status.Allocatable[name].DeepCopy()
		for _, other := range running {
			if !place.Leaving[other.UID] && (group(other) != r.Group || r.Bound[other.UID]) {
				take(&free, other, name)
			}
		}
		for _, member := range place.Members {
			take(&free, member, name)
		}
		if free.Cmp(quantity) < 0 {
			return false
		}
	}
	return true
}

// take subtracts what a pod is charged of one resource.
func take(free *resource.Quantity, pod *corev1.Pod, name corev1.ResourceName) {
	if q, ok := charge(pod)[name]; ok {
		free.Sub(q)
	}
}

// charge is what a pod takes of a node, its place among the node's pods included.
func charge(pod *corev1.Pod) corev1.ResourceList {
	list := placement.Request(pod)
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

package aging

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Promises is what gangs and pods have been promised by others than the keeper.
// Its methods are called from the engine's scheduling goroutine only.
type Promises interface {
	// Cleared is the room that is being made for others whom a member of the gang
	// must not get in the way of: the pods that leave, and those that come instead.
	Cleared(group types.NamespacedName, member *corev1.Pod) (leave []types.UID, come []*corev1.Pod)
	// Replaced are the dead members of other gangs whose places are held against a
	// member of the gang, on their nodes.
	Replaced(group types.NamespacedName, member *corev1.Pod) []*corev1.Pod
}

// Scene is the cluster as it is when promises have come true.
type Scene struct {
	Cluster *placement.Cluster
	// Promised are the pods on it that are not there yet. Nobody knows when they
	// end.
	Promised map[types.UID]bool
}

// after returns the scene when some have left and others have come.
func (s Scene) after(leave []types.UID, come []*corev1.Pod) Scene {
	if len(leave) == 0 && len(come) == 0 {
		return s
	}
	next := Scene{Cluster: s.Cluster.Without(leave...).With(come...), Promised: map[types.UID]bool{}}
	maps.Copy(next.Promised, s.Promised)
	for _, pod := range come {
		next.Promised[pod.UID] = true
	}
	return next
}

// leavers are the pods whose end a gang may wait for: not its own members.
func (s Scene) leavers(g Gang, now time.Time) (pods []*corev1.Pod) {
	for _, node := range s.Cluster.Nodes() {
		for _, pod := range s.Cluster.PodsOn(node.Name) {
			if !placement.DaemonSetPod(pod) && !s.Promised[pod.UID] && !hangs(pod, now) && !slices.Contains(g.Members.Bound, pod.UID) {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// fulfilled is the scene when a reservation has come true.
func (s Scene) fulfilled(r Reservation) Scene {
	var leave []types.UID
	var come []*corev1.Pod
	for node, place := range r.Nodes {
		for uid := range place.Leaving {
			leave = append(leave, uid)
		}
		for i, pod := range place.Members {
			member := pod.DeepCopy()
			member.UID = types.UID(fmt.Sprintf("%s/%s/%d", r.Group, node, i))
			member.Spec.NodeName = node
			come = append(come, member)
		}
	}
	return s.after(leave, come)
}

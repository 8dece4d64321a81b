package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// podInfos parses pods. What is the same for several pods, because they point to the same containers, is worked out once: in a
// snapshot of a large cluster most pods are one of a few kinds.
type podInfos map[podKind]*framework.PodInfo

// podKind is all that the amounts of a pod are computed from, for a pod without affinity and without overhead.
type podKind struct {
	containers, inits     *corev1.Container
	statuses, initsStatus *corev1.ContainerStatus
	conditions            *corev1.PodCondition
	resources             *corev1.ResourceRequirements
	statusResources       *corev1.ResourceRequirements
	lengths               [5]int
}

// of returns the parsed pod.
func (k podInfos) of(p *corev1.Pod) *framework.PodInfo {
	kind, ok := kindOf(p)
	if !ok {
		return podInfo(p)
	}
	like := k[kind]
	if like == nil {
		like = podInfo(p)
		like.CalculateResource() // it keeps the result, for those that are copied from it
		k[kind] = like
		return like
	}
	info := *like
	info.Pod = p
	return &info
}

// kindOf returns the kind of a pod; ok is false for one whose amounts depend on more than that.
func kindOf(p *corev1.Pod) (kind podKind, ok bool) {
	spec, status := &p.Spec, &p.Status
	if spec.Affinity != nil || len(spec.Overhead) > 0 || len(spec.Containers) == 0 || len(status.AllocatedResources) > 0 || status.ExtendedResourceClaimStatus != nil ||
		len(status.NodeAllocatableResourceClaimStatuses) > 0 {
		return podKind{}, false
	}
	return podKind{
		containers: first(spec.Containers), inits: first(spec.InitContainers), statuses: first(status.ContainerStatuses), initsStatus: first(status.InitContainerStatuses),
		conditions: first(status.Conditions), resources: spec.Resources, statusResources: status.Resources,
		lengths: [5]int{len(spec.Containers), len(spec.InitContainers), len(status.ContainerStatuses), len(status.InitContainerStatuses), len(status.Conditions)},
	}, true
}

// first is the address of the first element, which tells whether two slices share their elements.
func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// vector holds one amount a resource, by its position in the cluster's names. Missing positions are zero.
// CPU is in thousandths of a core, everything else in the resource's own unit.
type vector []int64

func (v vector) at(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// The positions that every cluster has.
const (
	posPods = iota
	posCPU
	posMemory
	posEphemeral
	posScalars
)

// names numbers the resources of a cluster. It is never changed once built.
type names struct {
	list  []corev1.ResourceName
	index map[corev1.ResourceName]int
}

func newNames() *names {
	n := &names{index: map[corev1.ResourceName]int{}}
	for _, r := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		n.index[r] = len(n.list)
		n.list = append(n.list, r)
	}
	return n
}

// with returns names that also number the scalar resources of the given amounts; n itself if they are all there.
func (n *names) with(amounts ...*framework.Resource) *names {
	missing := map[corev1.ResourceName]bool{}
	for _, a := range amounts {
		for r := range a.ScalarResources {
			if _, ok := n.index[r]; !ok {
				missing[r] = true
			}
		}
	}
	if len(missing) == 0 {
		return n
	}
	out := &names{list: slices.Clone(n.list), index: maps.Clone(n.index)}
	for _, r := range slices.Sorted(maps.Keys(missing)) {
		out.index[r] = len(out.list)
		out.list = append(out.list, r)
	}
	return out
}

func (n *names) vector(r *framework.Resource, pods int) vector {
	v := make(vector, len(n.list))
	v[posPods], v[posCPU], v[posMemory], v[posEphemeral] = int64(pods), r.MilliCPU, r.Memory, r.EphemeralStorage
	for name, amount := range r.ScalarResources {
		v[n.index[name]] = amount
	}
	return v
}

// Request returns what Kubernetes charges a pod that is to be placed: its containers plus restartable init containers, or the
// largest init container with the restartable ones before it, whichever is more; plus overhead.
func Request(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		SkipPodLevelResources: !utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
	})
}

func chargedTo(pod *corev1.Pod) *framework.Resource {
	r := &framework.Resource{}
	r.SetMaxResource(Request(pod))
	return r
}

// Quantity turns an amount of this package into an API quantity: thousandths of a core for cpu, the resource's own unit
// otherwise, written in powers of 1024 where Kubernetes does.
func Quantity(name corev1.ResourceName, amount int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// Amount is the reverse of Quantity.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Asked returns what Request charges a pod of one resource, in the unit of Quantity; of the places that a node has for pods it is
// one. For most pods, whose containers start at
// once and of which one requests the resource, it takes no sum: that is worth it for the pods of a whole cluster.
func Asked(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	spec := &pod.Spec
	if len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil {
		asking, at := 0, 0
		for i := range spec.Containers {
			if _, ok := spec.Containers[i].Resources.Requests[name]; ok {
				asking, at = asking+1, i
			}
		}
		switch asking {
		case 0:
			return 0
		case 1:
			return Amount(name, spec.Containers[at].Resources.Requests[name])
		}
	}
	return Amount(name, Request(pod)[name])
}

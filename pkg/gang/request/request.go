// Package request is the one home of what a pod requests: the sums by the scheduler's own arithmetic, the conversion between
// quantities and amounts, and the devices in a list.
package request

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/features"
)

// Of returns the requests of a pod as the scheduler charges them: its containers plus restartable init containers, or the
// largest init container with the restartable ones before it, whichever is more; plus overhead. Devices of which none is requested are
// left out: users may write thousands of them.
func Of(pod *corev1.Pod) corev1.ResourceList {
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		SkipPodLevelResources: !utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
	})
	maps.DeleteFunc(list, func(name corev1.ResourceName, q resource.Quantity) bool {
		return strings.Contains(string(name), "/") && q.IsZero()
	})
	return list
}

// OfTemplate returns the requests of one pod of a template. A template has not been through the API server's defaults, so a
// limit without a request counts as one.
func OfTemplate(spec corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for i := range pod.Spec.InitContainers {
		defaultRequests(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		defaultRequests(&pod.Spec.Containers[i])
	}
	return Of(pod)
}

// OfResource returns the request of a pod for one resource, in the unit of [Amount]; a pod requests one of [corev1.ResourcePods].
// It sums nothing for most pods, which have no init containers and one container that requests the resource: that is worth it
// for the pods of a whole cluster.
func OfResource(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	spec := &pod.Spec
	if len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil {
		requesting, at := 0, 0
		for i := range spec.Containers {
			if _, ok := spec.Containers[i].Resources.Requests[name]; ok {
				requesting, at = requesting+1, i
			}
		}
		switch requesting {
		case 0:
			return 0
		case 1:
			return Amount(name, spec.Containers[at].Resources.Requests[name])
		}
	}
	return Amount(name, Of(pod)[name])
}

func defaultRequests(c *corev1.Container) { c.Resources.Requests = OfContainer(c.Resources) }

// OfContainer returns what a container of a template requests: a limit without a request counts as one.
func OfContainer(r corev1.ResourceRequirements) corev1.ResourceList {
	if len(r.Limits) == 0 {
		return r.Requests
	}
	list := maps.Clone(r.Limits)
	maps.Copy(list, r.Requests)
	return list
}

// Quantity converts an amount to a quantity of the API. Amounts are thousandths of a core for cpu and the resource's own unit
// otherwise; a quantity is written in powers of 1024 where Kubernetes does.
func Quantity(name corev1.ResourceName, amount int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case Unit(name) > 1:
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// Unit is the least amount in which people request a resource: Mi of memory and storage, and pages of huge pages, of which the API takes no part.
func Unit(name corev1.ResourceName) int64 {
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
		return 1 << 20
	}
	if size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); huge {
		if page, err := resource.ParseQuantity(size); err == nil && page.Value() > 0 {
			return page.Value()
		}
	}
	return 1
}

// Down rounds an amount down to whole units of the resource, but to no less than one; Up rounds it up.
func Down(name corev1.ResourceName, amount int64) int64 {
	unit := Unit(name)
	if amount <= unit {
		return Up(name, amount)
	}
	return amount / unit * unit
}

// Up is the reverse of Down.
func Up(name corev1.ResourceName, amount int64) int64 {
	unit := Unit(name)
	return (amount + unit - 1) / unit * unit
}

// Amount is the reverse of Quantity.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// GPUs is the number of GPUs in a list: the sum of the extended resources that have "gpu" in their name, whatever the
// vendor (nvidia.com/gpu, amd.com/gpu, gpu.intel.com/i915, …).
func GPUs(list corev1.ResourceList) int64 {
	var total int64
	for name, quantity := range list {
		if IsGPU(name) {
			total += quantity.Value()
		}
	}
	return total
}

// IsGPU reports whether the resource is an extended one that has "gpu" in its name.
func IsGPU(name corev1.ResourceName) bool {
	s := strings.ToLower(string(name))
	return strings.Contains(s, "/") && strings.Contains(s, "gpu")
}

// IsExtended reports whether a name is that of an extended resource, DOMAIN/NAME.
func IsExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && len(content.IsLabelKey(string(name))) == 0
}

// IsHugePages reports whether a name is that of huge pages of a size, such as hugepages-1Gi.
func IsHugePages(name corev1.ResourceName) bool {
	size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	page, err := resource.ParseQuantity(size)
	return huge && err == nil && page.Sign() > 0 && page.String() == size
}

// IsWhole reports whether a quantity is whole devices, or whole huge pages, of which the API takes no part.
func IsWhole(name corev1.ResourceName, q resource.Quantity) bool {
	return q.Sign() >= 0 && q.Equal(*resource.NewQuantity(q.Value(), resource.DecimalSI)) && q.Value()%Unit(name) == 0
}

// Device is the accelerator in a list: the GPU if there is one, else the first other extended resource; "" without.
func Device(list corev1.ResourceList) corev1.ResourceName {
	var other corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		if q.IsZero() || !strings.Contains(string(name), "/") {
			continue
		}
		if IsGPU(name) {
			return name
		}
		if other == "" {
			other = name
		}
	}
	return other
}

// Devices is how many there are of the [Device] of a list.
func Devices(list corev1.ResourceList) int64 {
	q := list[Device(list)]
	return q.Value()
}

// Set makes a container request another amount of a resource. Its limit follows where it was no more than the request, or would be less
// than it now is; what was neither requested nor limited gets both. Devices, and huge pages, that are set to zero are no longer requested.
func Set(r *corev1.ResourceRequirements, name corev1.ResourceName, to resource.Quantity) {
	device := strings.Contains(string(name), "/")
	if to.IsZero() && (device || IsHugePages(name)) {
		delete(r.Requests, name)
		delete(r.Limits, name)
		return
	}
	limit, limited := r.Limits[name]
	had, requested := r.Requests[name]
	if !requested {
		had = limit
	}
	if limited && (limit.Cmp(had) <= 0 || limit.Cmp(to) < 0) || !limited && !requested || device {
		put(&r.Limits, name, to)
	}
	put(&r.Requests, name, to)
}

func put(list *corev1.ResourceList, name corev1.ResourceName, to resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = to
}

// Sum adds amounts, none of which is negative. What an int64 cannot hold is its largest value: users may write any amount.
func Sum(amounts ...int64) int64 {
	var sum int64
	for _, n := range amounts {
		if sum > math.MaxInt64-max(n, 0) {
			return math.MaxInt64
		}
		sum += max(n, 0)
	}
	return sum
}

// Times is the sum of the requests of n members of which each requests amount, with the limit of [Sum].
func Times(amount int64, n int32) int64 {
	high, low := bits.Mul64(uint64(max(amount, 0)), uint64(max(n, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

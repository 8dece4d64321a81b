package request

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// IsDevice reports whether the resource is one of devices, which a node has a number of: its name has a domain, DOMAIN/NAME.
func IsDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// DropUnrequested removes devices of which none is requested from a list. They require nothing of a node, and users may write thousands of them.
func DropUnrequested(list corev1.ResourceList) {
	maps.DeleteFunc(list, func(name corev1.ResourceName, q resource.Quantity) bool { return IsDevice(name) && q.IsZero() })
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

// IsGPU reports whether the resource is an extended one that has "gpu" in its name, and is no share of one: its memory or its cores, of which a GPU has thousands.
func IsGPU(name corev1.ResourceName) bool {
	lower := strings.ToLower(string(name))
	at := strings.LastIndex(lower, "gpu")
	if at < 0 || !IsDevice(name) {
		return false
	}
	of := strings.TrimLeft(lower[at+len("gpu"):], "-._")
	return !strings.HasPrefix(of, "mem") && !strings.HasPrefix(of, "core")
}

// IsExtended reports whether a name is that of an extended resource, and one that the API takes.
func IsExtended(name corev1.ResourceName) bool {
	return IsDevice(name) && len(content.IsLabelKey(string(name))) == 0
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

// ByClaims is how many devices a pod is charged for under the name of a resource that it does not request, but has by claims. What knows of claims charges them as
// overhead, of which no RuntimeClass has devices; queues do not count them.
func ByClaims(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if !IsDevice(name) {
		return 0
	}
	return Amount(name, pod.Spec.Overhead[name])
}

// Overhead is that of the RuntimeClass of a pod, without what [ByClaims] returns.
func Overhead(pod *corev1.Pod) corev1.ResourceList {
	if len(pod.Spec.Overhead) == 0 {
		return nil
	}
	list := maps.Clone(pod.Spec.Overhead)
	maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool { return IsDevice(name) })
	if len(list) == 0 {
		return nil
	}
	return list
}

// Device is the accelerator in a list: the GPU if there is one, else the first other extended resource; "" without.
func Device(list corev1.ResourceList) corev1.ResourceName {
	var other corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		if q.IsZero() || !IsDevice(name) {
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

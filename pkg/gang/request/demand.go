// Package request says what a pod asks the scheduler for.
package request

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Of is what one pod of the spec requests: containers, init containers, sidecars and overhead, by the scheduler's own
// arithmetic. A pod template has not been through the API server's defaults, so a limit without a request counts as one.
func Of(spec corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for i := range pod.Spec.InitContainers {
		defaultRequests(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		defaultRequests(&pod.Spec.Containers[i])
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

func defaultRequests(c *corev1.Container) {
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; ok {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = limit
	}
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

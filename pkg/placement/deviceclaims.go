package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// DescribeClaims is what a pod claims, for people: 1 of class gpu, 1 of class nic with one value of resource.kubernetes.io/pcieRoot. It is empty for a pod whose claims have
// their devices already, or that has none.
func (c *Cluster) DescribeClaims(pod *corev1.Pod) string {
	d := c.devicesOf(pod)
	claims := slices.Concat(d.own, d.shared)
	if len(claims) == 0 {
		return ""
	}
	return describeClaims(claims) + describeConstraints(claims)
}

// ConstrainsDevices reports whether the claims of a pod need devices that have values of an attribute in common, or different ones.
func (c *Cluster) ConstrainsDevices(pod *corev1.Pod) bool {
	d := c.devicesOf(pod)
	return describeConstraints(slices.Concat(d.own, d.shared)) != ""
}

// AnyDevices returns the cluster in which claims need no devices that go together.
func (c *Cluster) AnyDevices() *Cluster {
	after := c.copy()
	after.anyDevices = true
	return after
}

// unconstrained are claims without the rules for devices that go together.
func unconstrained(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	all := slices.Clone(claims)
	for i, k := range all {
		if len(k.Spec.Devices.Constraints) > 0 {
			all[i] = k.DeepCopy()
			all[i].Spec.Devices.Constraints = nil
		}
	}
	return all
}

func describeConstraints(claims []*resourceapi.ResourceClaim) string {
	var all []string
	for _, k := range claims {
		for _, rule := range k.Spec.Devices.Constraints {
			for text, attribute := range map[string]*resourceapi.FullyQualifiedName{"one value of ": rule.MatchAttribute, "different values of ": rule.DistinctAttribute} {
				if attribute != nil && !slices.Contains(all, text+string(*attribute)) {
					all = append(all, text+string(*attribute))
				}
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return " with " + strings.Join(bounded(all), " and ")
}

// describeCapacity is what a request takes of a device that claims share.
func describeCapacity(capacity *resourceapi.CapacityRequirements) string {
	if capacity == nil || len(capacity.Requests) == 0 {
		return ""
	}
	var all []string
	for name, q := range capacity.Requests {
		all = append(all, fmt.Sprintf("%s %s", name, q.String()))
	}
	slices.Sort(all)
	return " (" + strings.Join(bounded(all), ", ") + ")"
}

// PublishedDevices reads like: 16 of gpu.nvidia.com (L40S), 1 of nic.example.com (bandwidth 100G): the devices that drivers publish, by what they call the product, and what
// those have that claims share.
func (c *Cluster) PublishedDevices() []string {
	counts := map[string]int{}
	for s, device := range c.devices() {
		name := s.Spec.Driver
		if has := productOf(device); has != "" {
			name += " (" + has + ")"
		}
		counts[name]++
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d of %s", counts[name], name))
	}
	return bounded(all)
}

// productOf is what a driver calls a device, or what those that share it have.
func productOf(d resourceapi.Device) string {
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		at, value := strings.LastIndex(string(name), "/"), d.Attributes[name].StringValue
		if string(name)[at+1:] == "productName" && value != nil {
			return fmt.Sprintf("%.60s", *value)
		}
	}
	if !ptr.Deref(d.AllowMultipleAllocations, false) {
		return ""
	}
	var all []string
	for name, capacity := range d.Capacity {
		all = append(all, fmt.Sprintf("%s %s", name, capacity.Value.String()))
	}
	slices.Sort(all)
	return strings.Join(bounded(all), ", ")
}

package placement

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// allocated rejects nodes on which the pod's devices cannot be had.
func (c *Cluster) allocated(pod *corev1.Pod) check {
	d := c.devices(pod)
	if d.none() {
		return nil
	}
	wanted := append(numbered(d.own, "0"), numbered(d.shared, "shared")...)
	return func(n *node) []Violation {
		reason := d.problem
		if reason == "" {
			reason = elsewhere(d.fixed, n.obj)
		}
		if reason == "" && len(wanted) > 0 {
			reason = c.refused(n, wanted)
		}
		if reason == "" {
			return nil
		}
		total, free := c.devicesOn(n.obj.Name)
		return []Violation{{Constraint: DRADevices, Requested: asked(wanted), Available: free, Total: total, Detail: reason}}
	}
}

// elsewhere says which allocated claim is not available on a node, if one is not.
func elsewhere(claims []*resourceapi.ResourceClaim, n *corev1.Node) string {
	for _, k := range claims {
		if where := k.Status.Allocation.NodeSelector; where != nil {
			if selector, err := nodeaffinity.NewNodeSelector(where); err != nil || !selector.Match(n) {
				return fmt.Sprintf("ResourceClaim %s is allocated elsewhere", k.Name)
			}
		}
	}
	return ""
}

// refused says why the claims cannot be allocated together on a node; empty if they can.
func (c *Cluster) refused(n *node, claims []*resourceapi.ResourceClaim) string {
	allocator, err := c.allocator()
	if err != nil {
		return err.Error()
	}
	results, err := allocator.Allocate(context.Background(), n.obj, claims)
	if err != nil {
		return err.Error()
	}
	if results == nil {
		return "devices cannot be allocated: " + describeClaims(claims)
	}
	return ""
}

func describeClaims(claims []*resourceapi.ResourceClaim) string {
	var out []string
	for _, k := range claims {
		for _, r := range k.Spec.Devices.Requests {
			if r.Exactly != nil {
				out = append(out, fmt.Sprintf("%d of class %s", max(r.Exactly.Count, 1), r.Exactly.DeviceClassName))
			}
		}
	}
	return strings.Join(out, ", ")
}

// asked is how many devices claims ask for; requests for all devices, or for the first of several kinds, count as one.
func asked(claims []*resourceapi.ResourceClaim) int64 {
	var sum int64
	for _, k := range claims {
		for _, r := range k.Spec.Devices.Requests {
			if r.Exactly != nil {
				sum += max(r.Exactly.Count, 1)
			} else {
				sum++
			}
		}
	}
	return sum
}

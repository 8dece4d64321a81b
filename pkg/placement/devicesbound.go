package placement

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// requestedDevices are what members request by one and the same request, and the devices for it that no claim has, whoever may have them by their taints.
type requestedDevices struct {
	amounts []int64 // by role: of each member
	slices  []*resourceapi.ResourceSlice
	devices []resourceapi.Device // each of the slice at its position
}

// requestedOnce are the requests of members for a number of devices, of each role those that all its members have. Those for devices that overlap with others, or that claims
// share, are left out.
func requestedOnce(ctx context.Context, c *Cluster, claims [][]*resourceapi.ResourceClaim) (all []requestedDevices) {
	if _, err := c.allocator(); err != nil {
		return nil
	}
	at := map[string]int{}
	for i := range claims {
		for _, k := range claims[i] {
			for _, r := range k.Spec.Devices.Requests {
				if r.Exactly == nil || r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll || ptr.Deref(r.Exactly.AdminAccess, false) {
					continue
				}
				selectors, err := json.Marshal(r.Exactly.Selectors)
				key := r.Exactly.DeviceClassName + string(selectors)
				n, known := at[key]
				if !known {
					n, at[key] = len(all), len(all)
					all = append(all, c.unallocated(ctx, c.matching(ctx, r.Exactly.DeviceClassName, r.Exactly.Selectors)))
					all[n].amounts = make([]int64, len(claims))
				}
				if err == nil && all[n].slices != nil {
					all[n].amounts[i] += max(r.Exactly.Count, 1)
				}
			}
		}
	}
	return all
}

// unallocated are the devices that match and that no claim has; none if they cannot be counted.
func (c *Cluster) unallocated(ctx context.Context, match deviceMatch) (r requestedDevices) {
	r.slices = []*resourceapi.ResourceSlice{}
	for s, device := range c.devices() {
		is, err := match(s, device)
		switch {
		case err != nil || ctx.Err() != nil || is && !countable(device):
			return requestedDevices{}
		case is && !c.allocation.used(s, device.Name):
			r.slices, r.devices = append(r.slices, s), append(r.devices, device)
		}
	}
	return r
}

// bound compares the devices that candidates reach, each of them once, with what the members request that the gang needs.
func (d *deviceFit) bound(t *task, candidates []*candidate) *Bound {
	if !d.takesOnce() {
		return nil
	}
	for _, r := range d.requested {
		least := t.leastRequested(r.amounts)
		if least == 0 {
			continue
		}
		if have := r.reachedFrom(candidates); have < least {
			return r.short(t, have)
		}
	}
	return nil
}

// reachedFrom is how many of the devices one of the candidates reaches that take members which request them.
func (r requestedDevices) reachedFrom(candidates []*candidate) (have int64) {
	var nodes []*corev1.Node
	local := map[string]bool{}
	for _, s := range candidates {
		for i, amount := range r.amounts {
			if amount > 0 && s.slots[i] > 0 && !local[s.n.obj.Name] {
				nodes = append(nodes, s.n.obj)
				local[s.n.obj.Name] = true
			}
		}
	}
	reached := false
	for i, s := range r.slices {
		// The devices of a slice follow each other, and reach the same nodes, unless each has nodes of its own.
		if i == 0 || s != r.slices[i-1] || ptr.Deref(s.Spec.PerDeviceNodeSelection, false) {
			reached = reachesAny(s, r.devices[i], nodes, local)
		}
		if reached {
			have++
		}
	}
	return have
}

// reachesAny reports whether a device is to be had on one of some nodes, whose names are in local.
func reachesAny(s *resourceapi.ResourceSlice, d resourceapi.Device, nodes []*corev1.Node, local map[string]bool) bool {
	name, all, where := s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector
	if ptr.Deref(s.Spec.PerDeviceNodeSelection, false) {
		name, all, where = d.NodeName, d.AllNodes, d.NodeSelector
	}
	switch {
	case ptr.Deref(all, false):
		return len(nodes) > 0
	case where != nil:
		selector, err := nodeaffinity.NewNodeSelector(where)
		return err == nil && slices.ContainsFunc(nodes, selector.Match)
	}
	return local[ptr.Deref(name, "")]
}

// short is that so many devices are too few, by how many members could have theirs at most.
func (r requestedDevices) short(t *task, have int64) *Bound {
	b := &Bound{Need: int64(t.required), Constraint: DRADevices}
	users, fewest := 0, int64(0)
	for i, amount := range r.amounts {
		if amount == 0 {
			b.Have += int64(t.roles[i].count)
			continue
		}
		users++
		if b.Role = t.roles[i].name; fewest == 0 || amount < fewest {
			fewest = amount
		}
	}
	if users > 1 {
		b.Role, b.Have = "", min(b.Have+have/fewest, b.Need-1)
		return b
	}
	i := slices.IndexFunc(r.amounts, func(amount int64) bool { return amount > 0 })
	b.Need, b.Have = int64(t.least(i)), have/fewest
	return b
}

package placement

import (
	"context"
	"iter"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// DeviceCount is the number of devices of one class that resource claims request, and that there are.
type DeviceCount struct {
	Class string
	// Requested is what all members request; Members is how many of them do, and PerMember what each does: 0 if that differs.
	Requested, PerMember int64
	Members              int32
	// Total is how many devices there are on the nodes that some of these members may use, Free those of them that are not allocated, nor withheld by a taint, and
	// Elsewhere how many there are on other nodes.
	Free, Total, Elsewhere int64
}

// DeviceCounts are the numbers of devices for the claims of some roles, a class each, in the order in which they are claimed. A claim that
// several members share counts once. It is nil where there is no such number: of requests for all devices, or for the first of several
// kinds; of devices that overlap, as the slices of a GPU do, or that claims may share; and if ctx ends first.
func (c *Cluster) DeviceCounts(ctx context.Context, roles []Role) []DeviceCount {
	var claimed deviceSum
	seen := map[*resourceapi.ResourceClaim]bool{}
	for _, role := range roles {
		d := c.devicesOf(role.Pod)
		shared := slices.DeleteFunc(d.shared, func(k *resourceapi.ResourceClaim) bool { return seen[k] })
		for _, k := range shared {
			seen[k] = true
		}
		if !claimed.add(d.own, role.Count) || !claimed.add(shared, 1) {
			return nil
		}
	}
	usable := c.claimable(ctx, roles)
	for i := range claimed.counts {
		if !c.count(&claimed.counts[i], usable, c.matching(ctx, claimed.counts[i].Class, claimed.selectors[i])) {
			return nil
		}
	}
	return claimed.counts
}

// deviceSum sums up what claims request, by class. The selectors are those that all requests of a class have in common, or none.
type deviceSum struct {
	counts    []DeviceCount
	selectors [][]resourceapi.DeviceSelector
}

// add adds claims that each of some members has; ok is false if there is no number of what they request.
func (s *deviceSum) add(claims []*resourceapi.ResourceClaim, members int32) (ok bool) {
	per := map[string]int64{}
	for _, k := range claims {
		for _, r := range k.Spec.Devices.Requests {
			if r.Exactly == nil || r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
				return false
			}
			class := r.Exactly.DeviceClassName
			per[class] += max(r.Exactly.Count, 1)
			i := slices.IndexFunc(s.counts, func(d DeviceCount) bool { return d.Class == class })
			switch {
			case i < 0:
				s.counts, s.selectors = append(s.counts, DeviceCount{Class: class}), append(s.selectors, r.Exactly.Selectors)
			case !equality.Semantic.DeepEqual(s.selectors[i], r.Exactly.Selectors):
				s.selectors[i] = nil
			}
		}
	}
	for i := range s.counts {
		d, n := &s.counts[i], per[s.counts[i].Class]
		if n == 0 {
			continue
		}
		if d.PerMember = n; d.Members > 0 && d.Requested != int64(d.Members)*n {
			d.PerMember = 0
		}
		d.Members, d.Requested = d.Members+members, d.Requested+n*int64(members)
	}
	return true
}

// claimable reports for a node whether members of some roles with claims may use it.
func (c *Cluster) claimable(ctx context.Context, roles []Role) func(node string) bool {
	open := make([]bool, len(c.nodes))
	for _, role := range roles {
		if len(role.Pod.Spec.ResourceClaims) == 0 {
			continue
		}
		_, usable := c.usableBy(ctx, role)
		for i, is := range usable {
			open[i] = open[i] || is
		}
	}
	return func(node string) bool {
		at, known := c.byName[node]
		return known && open[at]
	}
}

// count counts the devices that match, in the latest slices of each pool. ok is false if that cannot be.
func (c *Cluster) count(d *DeviceCount, usable func(node string) bool, match func(*resourceapi.ResourceSlice, resourceapi.Device) (bool, error)) (ok bool) {
	if _, err := c.allocator(); err != nil {
		return false
	}
	for s, device := range c.devices() {
		is, err := match(s, device)
		if err != nil || is && !countable(device) {
			return false
		}
		if !is {
			continue
		}
		if s.Spec.NodeName != nil && !usable(*s.Spec.NodeName) {
			d.Elsewhere++
			continue
		}
		d.Total++
		if !c.allocation.used(s, device.Name) && !slices.ContainsFunc(device.Taints, withholds) {
			d.Free++
		}
	}
	return true
}

// devices goes through the devices of the latest slices of each pool.
func (c *Cluster) devices() iter.Seq2[*resourceapi.ResourceSlice, resourceapi.Device] {
	type pool struct{ driver, name string }
	latest := map[pool]int64{}
	for _, s := range c.objects.ResourceSlices {
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		latest[p] = max(latest[p], s.Spec.Pool.Generation)
	}
	return func(yield func(*resourceapi.ResourceSlice, resourceapi.Device) bool) {
		for _, s := range c.objects.ResourceSlices {
			if s.Spec.Pool.Generation < latest[pool{s.Spec.Driver, s.Spec.Pool.Name}] {
				continue
			}
			for _, device := range s.Spec.Devices {
				if !yield(s, device) {
					return
				}
			}
		}
	}
}

// countable reports whether a device is one: it does not overlap with others, nor is it shared by claims.
func countable(d resourceapi.Device) bool {
	return len(d.ConsumesCounters) == 0 && !ptr.Deref(d.AllowMultipleAllocations, false)
}

// FreeDevices counts the devices of a class that no claim has and no taint withholds, by the name of the node that has them. ok is false if there is no such
// number, because devices of the class overlap, or are of several nodes, or because ctx ends first.
func (c *Cluster) FreeDevices(ctx context.Context, class string) (free map[string]int64, ok bool) {
	if _, err := c.allocator(); err != nil {
		return nil, false
	}
	free, match := map[string]int64{}, c.matching(ctx, class, nil)
	for s, device := range c.devices() {
		is, err := match(s, device)
		if err != nil || is && (!countable(device) || s.Spec.NodeName == nil) {
			return nil, false
		}
		withheld := slices.ContainsFunc(device.Taints, withholds)
		if is && !withheld && !c.allocation.used(s, device.Name) {
			free[*s.Spec.NodeName]++
		}
	}
	return free, true
}

// matching reports whether a device is of a class, and what further selectors select.
func (c *Cluster) matching(ctx context.Context, className string, selectors []resourceapi.DeviceSelector) func(*resourceapi.ResourceSlice, resourceapi.Device) (bool, error) {
	if class, err := deviceClasses(c.objects.DeviceClasses).Get(className); err == nil {
		selectors = slices.Concat(class.Spec.Selectors, selectors)
	}
	cache := cel.NewCache(len(selectors)+1, cel.Features{})
	return func(s *resourceapi.ResourceSlice, d resourceapi.Device) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		for _, selector := range selectors {
			if selector.CEL == nil {
				continue
			}
			expression := cache.GetOrCompile(selector.CEL.Expression)
			if expression.Error != nil {
				return false, expression.Error
			}
			is, _, err := expression.DeviceMatches(ctx, cel.Device{Driver: s.Spec.Driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity})
			if err != nil || !is {
				return false, err
			}
		}
		return true, nil
	}
}

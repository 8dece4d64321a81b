package placement

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
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
	// OfClass is how many there are of the class on the nodes of Total, Selector what selects those of Total, as all claims have it, and Problem why that fails for one.
	OfClass           int64
	Selector, Problem string
	// Drivers are those that publish devices of the class.
	Drivers []string
}

// DeviceCounts are the numbers of devices for the claims of some roles, a class each, in the order in which they are claimed. A claim that
// several members share counts once. It is nil where there is no such number: of requests for all devices, or for the first of several
// kinds; of devices that overlap, as the slices of a GPU do, or that claims may share; and if ctx ends first.
func (c *Cluster) DeviceCounts(ctx context.Context, roles []Role) []DeviceCount {
	c = c.releasedFor(Gang{Roles: roles})
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
		if !c.count(ctx, &claimed.counts[i], usable, claimed.selectors[i]) {
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

// count counts the devices of a class that some selectors select, in the latest slices of each pool. ok is false if that cannot be.
func (c *Cluster) count(ctx context.Context, d *DeviceCount, usable func(node string) bool, selectors []resourceapi.DeviceSelector) (ok bool) {
	if _, err := c.allocator(); err != nil {
		return false
	}
	d.Selector = describeSelectors(selectors)
	ofClass, selected := c.matching(ctx, d.Class, nil), matching(ctx, selectors)
	for s, device := range c.devices() {
		if is, err := ofClass(s, device); err != nil {
			return false
		} else if !is {
			continue
		}
		if !slices.Contains(d.Drivers, s.Spec.Driver) {
			d.Drivers = append(d.Drivers, s.Spec.Driver)
		}
		is, err := selected(s, device)
		if ctx.Err() != nil || is && !countable(device) {
			return false
		}
		if err != nil && d.Problem == "" {
			d.Problem = fmt.Sprintf("%.200s", err)
		}
		use := s.Spec.NodeName == nil || usable(*s.Spec.NodeName)
		switch {
		case use && is:
			d.Total++
			if !c.allocation.used(s, device.Name) && !slices.ContainsFunc(device.Taints, withholds) {
				d.Free++
			}
			fallthrough
		case use:
			d.OfClass++
		case is:
			d.Elsewhere++
		}
	}
	return true
}

// describeSelectors is what devices have to be, for people. Users write it.
func describeSelectors(selectors []resourceapi.DeviceSelector) string {
	var all []string
	for _, s := range selectors {
		if s.CEL != nil {
			all = append(all, fmt.Sprintf("%.200s", s.CEL.Expression))
		}
	}
	return strings.Join(bounded(all), " and ")
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

// ClassDevices are the devices of a class that no taint withholds.
type ClassDevices struct {
	// Free is how many no claim has, by the name of the node that has them.
	Free map[string]int64
	// Held is how many claims have, by the pod that uses them, the first of several. Those of the claims that kube-scheduler makes for extended resources are left out:
	// their pods request the resource.
	Held map[types.UID]int64
}

// DevicesOf counts the devices of a class. ok is false if there is no such number, because devices of the class overlap, or are of several nodes, or because ctx ends
// first.
func (c *Cluster) DevicesOf(ctx context.Context, class string) (d ClassDevices, ok bool) {
	if _, err := c.allocator(); err != nil {
		return ClassDevices{}, false
	}
	users := c.deviceUsers()
	d, match := ClassDevices{map[string]int64{}, map[types.UID]int64{}}, c.matching(ctx, class, nil)
	for s, device := range c.devices() {
		is, err := match(s, device)
		if err != nil || is && (!countable(device) || s.Spec.NodeName == nil) {
			return ClassDevices{}, false
		}
		if !is || slices.ContainsFunc(device.Taints, withholds) {
			continue
		}
		if user, held := users[structured.MakeDeviceID(s.Spec.Driver, s.Spec.Pool.Name, device.Name)]; held {
			d.Held[user]++
		} else if !c.allocation.used(s, device.Name) {
			d.Free[*s.Spec.NodeName]++
		}
	}
	return d, true
}

// deviceUsers are the pods that use devices by claims of theirs, the first of each claim.
func (c *Cluster) deviceUsers() map[structured.DeviceID]types.UID {
	users := map[structured.DeviceID]types.UID{}
	for _, k := range c.objects.ResourceClaims {
		at := slices.IndexFunc(k.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool {
			return r.APIGroup == "" && r.Resource == "pods"
		})
		if k.Status.Allocation == nil || at < 0 || k.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "" {
			continue
		}
		for _, r := range k.Status.Allocation.Devices.Results {
			if !ptr.Deref(r.AdminAccess, false) {
				users[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)] = k.Status.ReservedFor[at].UID
			}
		}
	}
	return users
}

// matching reports whether a device is of a class, and what further selectors select.
func (c *Cluster) matching(ctx context.Context, className string, selectors []resourceapi.DeviceSelector) deviceMatch {
	if class, err := deviceClasses(c.objects.DeviceClasses).Get(className); err == nil {
		selectors = slices.Concat(class.Spec.Selectors, selectors)
	}
	return matching(ctx, selectors)
}

// deviceMatch reports whether a device of a slice is one that is looked for.
type deviceMatch func(*resourceapi.ResourceSlice, resourceapi.Device) (bool, error)

// matching reports whether selectors select a device.
func matching(ctx context.Context, selectors []resourceapi.DeviceSelector) deviceMatch {
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

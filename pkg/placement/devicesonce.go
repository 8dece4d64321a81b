package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Devices that several nodes reach, as those of a network are, are gone for all of these once a member has them. Where members claim such devices they are placed one after
// the other, each with what those before it have left, as kube-scheduler does.

// ofSeveralNodes reports whether a claim may get devices that several nodes reach.
func (c *Cluster) ofSeveralNodes(ctx context.Context, claim *resourceapi.ResourceClaim) bool {
	selects := func(class string, selectors []resourceapi.DeviceSelector) bool {
		match := c.matching(ctx, class, selectors)
		for s, device := range c.devices() {
			if s.Spec.NodeName == nil {
				if is, err := match(s, device); is || err != nil {
					return true
				}
			}
		}
		return false
	}
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly != nil && selects(r.Exactly.DeviceClassName, r.Exactly.Selectors) ||
			slices.ContainsFunc(r.FirstAvailable, func(r resourceapi.DeviceSubRequest) bool { return selects(r.DeviceClassName, r.Selectors) }) {
			return true
		}
	}
	return false
}

// findOnce finds whether what members have is gone for those on other nodes, too.
func (d *deviceFit) findOnce(ctx context.Context, t *task) {
	if !slices.ContainsFunc(t.c.objects.ResourceSlices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.NodeName == nil }) {
		return
	}
	for _, k := range slices.Concat(d.claims...) {
		d.once = d.once || t.c.ofSeveralNodes(ctx, k)
	}
	for _, k := range d.shared {
		if t.c.ofSeveralNodes(ctx, k.claim) {
			d.once = true
			// Which devices it gets, of those that reach the same nodes, is not tried.
			t.unmodelled[fmt.Sprintf("ResourceClaim %s, which members share, is not allocated yet", k.claim.Name)] = true
		}
	}
	if d.once {
		d.requested = requestedOnce(ctx, t.c, d.claims)
	}
}

// takesOnce reports whether devices that members have are gone for those on other nodes.
func (d *deviceFit) takesOnce() bool { return d != nil && d.once }

// takenDevices are what members that are placed one after the other have taken.
type takenDevices struct {
	fit     *deviceFit
	state   *allocation
	members []takenBy
	reach   []func(*corev1.Node) bool // by claim that members share: where its devices are to be had, once a member has them
	// allocator returns one with what is taken.
	allocator func() (structured.Allocator, error)
	// undecided: time ended before it was known whether some devices are to be had.
	undecided bool
}

// takenBy is what one member has taken.
type takenBy struct {
	results []resourceapi.AllocationResult
	first   []int // the claims that it shares with others, and is the first to use
}

// nothingTaken is what members have taken before any is placed; nil where what they take does not matter to others.
func (t *task) nothingTaken() *takenDevices {
	if !t.devices.takesOnce() {
		return nil
	}
	_, _ = t.c.allocator() // its error is that of every node
	known := t.c.allocation.state
	x := &takenDevices{fit: t.devices, reach: make([]func(*corev1.Node) bool, len(t.devices.shared)), state: &allocation{state: structured.AllocatedState{
		AllocatedDevices: known.AllocatedDevices.Clone(), AllocatedSharedDeviceIDs: known.AllocatedSharedDeviceIDs.Clone(), AggregatedCapacity: known.AggregatedCapacity.Clone(),
	}}}
	x.allocator = func() (structured.Allocator, error) { return t.c.newAllocator(x.state.state) }
	if !slices.ContainsFunc(t.c.objects.ResourceSlices, func(s *resourceapi.ResourceSlice) bool { return len(s.Spec.SharedCounters) > 0 }) {
		x.allocator = sync.OnceValues(x.allocator) // it looks at the state each time, but for what is left of counters
	}
	return x
}

// take lets a member of a role on a candidate have its devices, and reports whether they are to be had.
func (x *takenDevices) take(i int, s *candidate) bool {
	if x == nil {
		return true
	}
	by, claims := takenBy{}, copiesFor(x.fit.claims[i], fmt.Sprint(len(x.members)))
	for at, k := range x.fit.shared {
		switch {
		case !k.users[i]:
		case x.reach[at] == nil:
			by.first, claims = append(by.first, at), append(claims, copiesFor([]*resourceapi.ResourceClaim{k.claim}, "shared")...)
		case !x.reach[at](s.n.obj):
			return false
		}
	}
	if len(claims) > 0 {
		allocator, err := x.allocator()
		if err != nil {
			return false
		}
		results, reason, decided := x.fit.allocateBy(allocator, s.n, claims)
		if x.undecided = x.undecided || !decided; !decided || reason != "" {
			return false
		}
		by.results = results
	}
	for n, at := range by.first {
		_, x.reach[at], _ = reachOf(by.results[len(by.results)-len(by.first)+n].NodeSelector, s.n.obj)
	}
	for _, r := range by.results {
		x.state.take(r.Devices.Results)
	}
	x.members = append(x.members, by)
	return true
}

// giveBack takes back what the last member has.
func (x *takenDevices) giveBack() {
	if x == nil {
		return
	}
	last := len(x.members) - 1
	for _, r := range x.members[last].results {
		x.state.giveBack(r.Devices.Results)
	}
	for _, at := range x.members[last].first {
		x.reach[at] = nil
	}
	x.members = x.members[:last]
}

// key is equal where the same devices are taken.
func (x *takenDevices) key() string {
	if x == nil {
		return ""
	}
	var all []string
	for _, by := range x.members {
		for _, r := range by.results {
			for _, d := range r.Devices.Results {
				text := d.Driver + "/" + d.Pool + "/" + d.Device
				for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
					q := d.ConsumedCapacity[name]
					text += fmt.Sprintf(" %s=%s", name, q.String())
				}
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// realised is the part of a packing whose members get their devices one after the other, with the order of these.
func (t *task) realised(p packing) packing {
	part, taken := packing{candidates: p.candidates, placed: make(combination, len(t.roles))}, t.nothingTaken()
	for at, s := range p.candidates {
		part.counts = append(part.counts, make(combination, len(t.roles)))
		for i, n := range p.counts[at] {
			for part.counts[at][i] < n && !t.overdue() && taken.take(i, s) {
				part.counts[at][i]++
				part.placed[i]++
				part.path = append(part.path, step{s, i})
			}
		}
	}
	return part
}

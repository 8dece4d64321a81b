package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
)

// allocation is the upstream allocator with what is allocated in one Cluster.
type allocation struct {
	once      sync.Once
	allocator structured.Allocator
	state     structured.AllocatedState
	err       error

	countOnce sync.Once
	count     map[string]devicesOfNode

	// looks are whether claims were had on nodes, by what the claims request, for those that come after them.
	lock  sync.Mutex
	looks map[string]map[*node]bool
}

// looked reports whether claims can be had on a node, where that is known.
func (a *allocation) looked(requested string, n *node) (had, known bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	had, known = a.looks[requested][n]
	return had, known
}

// look keeps whether claims can be had on a node.
func (a *allocation) look(requested string, n *node, had bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.looks[requested] == nil {
		if a.looks == nil || len(a.looks) >= maxKept {
			a.looks = map[string]map[*node]bool{} // users write what is requested
		}
		a.looks[requested] = map[*node]bool{}
	}
	a.looks[requested][n] = had
}

// devicesOfNode is how many devices a node has, and how many of them no claim has.
type devicesOfNode struct{ total, free int64 }

// nothingAllocated is the state in which no device is allocated.
func nothingAllocated() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
}

// projectionBudget is how long devices are looked for of all the members that what-ifs have placed on a cluster.
const projectionBudget = 100 * time.Millisecond

// allocator returns the allocator that kube-scheduler uses, set up with the claims of the cluster.
func (c *Cluster) allocator() (structured.Allocator, error) {
	a := &c.allocation
	a.once.Do(func() {
		a.state = nothingAllocated()
		for _, k := range c.objects.ResourceClaims {
			if k.Status.Allocation != nil && c.inUse(k) {
				a.take(k.Status.Allocation.Devices.Results)
			}
		}
		a.allocator, a.err = c.newAllocator(a.state)
		ctx, cancel := context.WithTimeout(context.Background(), projectionBudget)
		defer cancel()
		for _, n := range c.nodes {
			for _, p := range n.info.Pods {
				if pod := p.GetPod(); a.err == nil && len(pod.Spec.ResourceClaims) > 0 && strings.HasPrefix(string(pod.UID), memberUID) {
					a.allocateFor(ctx, c, n.obj, pod)
				}
			}
		}
	})
	return a.allocator, a.err
}

func (c *Cluster) newAllocator(state structured.AllocatedState) (structured.Allocator, error) {
	_, fts := c.store.get(c.objects)
	features := dynamicresources.AllocatorFeatures(fts)
	cache := cel.NewCache(64, cel.Features{EnableConsumableCapacity: fts.EnableDRAConsumableCapacity, EnableListTypeAttributes: fts.EnableDRAListTypeAttributes})
	slices := slices.Clone(c.objects.ResourceSlices)
	allocator, err := structured.NewAllocator(context.Background(), features, state, deviceClasses(c.objects.DeviceClasses), slices, cache)
	if err != nil {
		return nil, fmt.Errorf("set up the device allocator: %w", err)
	}
	return allocator, nil
}

// allocateFor takes the devices of a member that a what-if has placed. They stay free if they are not found in time: nothing is
// refused for that.
func (a *allocation) allocateFor(ctx context.Context, c *Cluster, n *corev1.Node, pod *corev1.Pod) {
	results, err := a.allocator.Allocate(ctx, n, copiesFor(c.devicesOf(pod).own, pod.Name))
	if err != nil {
		return // the check of the next pod meets the same error and reports it, or the time is over
	}
	for _, r := range results {
		a.take(r.Devices.Results)
	}
	a.allocator, a.err = c.newAllocator(a.state)
}

// take counts devices as allocated, as the plugin does: of one that several claims may share, what the claim consumes.
func (a *allocation) take(results []resourceapi.DeviceRequestAllocationResult) {
	for _, r := range results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case ptr.Deref(r.AdminAccess, false):
		case r.ShareID == nil:
			a.state.AllocatedDevices.Insert(id)
		default:
			a.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
			a.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	}
}

// giveBack undoes take.
func (a *allocation) giveBack(results []resourceapi.DeviceRequestAllocationResult) {
	for _, r := range results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case ptr.Deref(r.AdminAccess, false):
		case r.ShareID == nil:
			a.state.AllocatedDevices.Delete(id)
		default:
			a.state.AllocatedSharedDeviceIDs.Delete(structured.MakeSharedDeviceID(id, r.ShareID))
			a.state.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	}
}

// used reports whether a device is allocated, to one claim or to some that share it.
func (a *allocation) used(s *resourceapi.ResourceSlice, device string) bool {
	id := structured.MakeDeviceID(s.Spec.Driver, s.Spec.Pool.Name, device)
	_, shared := a.state.AggregatedCapacity[id]
	return shared || a.state.AllocatedDevices.Has(id)
}

// devicesOn counts the devices of a node, and those of them that no claim has.
func (c *Cluster) devicesOn(node string) (total, free int64) {
	_, _ = c.allocator()
	a := &c.allocation
	a.countOnce.Do(func() {
		a.count = map[string]devicesOfNode{}
		for _, s := range c.objects.ResourceSlices {
			name := ptr.Deref(s.Spec.NodeName, "")
			on := a.count[name]
			for _, d := range s.Spec.Devices {
				on.total++
				if !a.used(s, d.Name) {
					on.free++
				}
			}
			a.count[name] = on
		}
	})
	return a.count[node].total, a.count[node].free
}

// deviceClasses lists DeviceClasses for the allocator.
type deviceClasses []*resourceapi.DeviceClass

// List implements structured.DeviceClassLister.
func (l deviceClasses) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

// Get implements structured.DeviceClassLister.
func (l deviceClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := gang.Named([]*resourceapi.DeviceClass(l), "", name); class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("DeviceClass %s not found", name)
}

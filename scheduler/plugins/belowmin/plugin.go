package belowmin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Name is the plugin's name in a configuration file.
const Name = "GangBelowMinimum"

// Plugin reads the policy's arguments, keeps members from joining a gang that is being
// evicted, and tracks those that have a node until it is known whether they are bound.
type Plugin struct{ controller *Controller }

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PostBindPlugin    = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// NewPlugin returns the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (c *Controller) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return nil, err
	}
	profile, ok := handle.(interface{ ProfileName() string })
	if !ok {
		return nil, fmt.Errorf("plugin %s needs to know its profile", Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profiles[profile.ProfileName()] = a
	return &Plugin{controller: c}, nil
}

// Name implements framework.Plugin.
func (p *Plugin) Name() string { return Name }

// PreFilter implements framework.PreFilterPlugin. It rejects members of a gang that
// is being evicted: they wait for the gang as a whole.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	group, ok := engine.GroupOf(pod)
	if !ok || !p.controller.isEvicting(group) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	name := group.String()
	if key, err := gang.ParseVirtualName(group.Namespace, group.Name); err == nil {
		name = key.Namespace + "/" + key.Name
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("gang %s gives its places back, and waits as a whole when all of its members have", name))
}

// isEvicting reports whether a gang is being evicted.
func (c *Controller) isEvicting(group types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicting[group]
}

// PreFilterExtensions implements framework.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve implements framework.ReservePlugin. In the pod group cycle it has no
// meaning: no member is bound before all have a node.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.controller.bindingStarted(group, pod.UID)
	}
	return nil
}

// Unreserve implements framework.ReservePlugin: the member is not bound. The
// engine's client has made sure of it.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.controller.bindingEnded(group, pod.UID, false)
	}
}

// PostBind implements framework.PostBindPlugin: the member is bound.
func (p *Plugin) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if group, ok := engine.GroupOf(pod); ok {
		p.controller.bindingEnded(group, pod.UID, true)
	}
}

// EventsToRegister implements framework.EnqueueExtensions. A gang is evicted when its
// last member is deleted.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}}}, nil
}

// SignPod implements framework.SignPlugin.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return engine.SignAlone(pod)
}

// inFlight is the members of a gang that have a node and of which it is not known yet
// whether they are bound: they wait for others, for a volume, or for the answer of an
// API server that may not be reachable. As long as there is one, the number of members
// that are bound cannot be determined.
type inFlight struct {
	members map[types.UID]bool
	since   time.Time     // when the first of the members got its node
	spent   time.Duration // for how long members were in flight before
	bound   int           // how many were bound since the gang was whole or had no places
}

// bindingStarted records that a member has a node and is to be bound.
func (c *Controller) bindingStarted(group types.NamespacedName, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.inFlight[group]
	if f == nil {
		f = &inFlight{members: map[types.UID]bool{}}
		c.inFlight[group] = f
	}
	if len(f.members) == 0 {
		f.since = c.Clock.Now()
	}
	f.members[uid] = true
}

// bindingEnded records that it is known whether a member is bound. After the last one the gang
// is reconciled.
func (c *Controller) bindingEnded(group types.NamespacedName, uid types.UID, bound bool) {
	c.mu.Lock()
	f := c.inFlight[group]
	if f == nil || !f.members[uid] {
		c.mu.Unlock()
		return
	}
	delete(f.members, uid)
	if bound {
		f.bound++
	}
	last := len(f.members) == 0
	if last {
		f.spent += c.Clock.Now().Sub(f.since)
	}
	c.mu.Unlock()
	if key, err := gang.ParseVirtualName(group.Namespace, group.Name); last && err == nil {
		c.Touch(key)
	}
}

// boundSoFar returns how many members of a gang were bound since it was seen whole or
// had no places. A gang may be whole, lose a member and have it replaced before it is
// seen, and within the second that the times of pods are given in.
func (c *Controller) boundSoFar(group types.NamespacedName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.inFlight[group]; f != nil {
		return f.bound
	}
	return 0
}

// inFlightTime returns for how long members of a gang were in flight in all, and
// whether any are now.
func (c *Controller) inFlightTime(group types.NamespacedName) (spent time.Duration, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.inFlight[group]
	if f == nil {
		return 0, false
	}
	if now = len(f.members) > 0; now {
		return f.spent + c.Clock.Now().Sub(f.since), now
	}
	return f.spent, now
}

// dropInFlight drops the record of a gang, unless members are in flight.
func (c *Controller) dropInFlight(group types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.inFlight[group]; f != nil && len(f.members) == 0 {
		delete(c.inFlight, group)
	}
}

package belowmin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// Name is the plugin's name in a configuration file.
const Name = "GangPolicy"

// Plugin takes the policy's arguments, keeps members from joining a gang whose
// places are being taken, and follows those that were decided on until it is
// known whether they are bound.
type Plugin struct{ controller *Controller }

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PostBindPlugin    = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// New makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (c *Controller) New(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := decode(object)
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

// PreFilter implements framework.PreFilterPlugin.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	group, ok := engine.GroupOf(pod)
	if !ok || !p.controller.isLeaving(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	name := group.String()
	if key, err := gang.ParseVirtualName(group.Namespace, group.Name); err == nil {
		name = key.Namespace + "/" + key.Name
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("gang %s gives its places back, and waits as a whole when all of its members have", name))
}

// isLeaving tells whether the places of a pod's gang are being taken.
func (c *Controller) isLeaving(pod *corev1.Pod) bool {
	group, _ := engine.GroupOf(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving[group]
}

// PreFilterExtensions implements framework.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve implements framework.ReservePlugin. While a gang is tried it means
// nothing: nobody sets out before all are decided on.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.controller.setOut(group, pod.UID)
	}
	return nil
}

// Unreserve implements framework.ReservePlugin: the member is not bound. The
// engine's client has made sure of it.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.controller.arrive(group, pod.UID)
	}
}

// PostBind implements framework.PostBindPlugin: the member is bound.
func (p *Plugin) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if group, ok := engine.GroupOf(pod); ok {
		p.controller.arrive(group, pod.UID)
	}
}

// EventsToRegister implements framework.EnqueueExtensions.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}}}, nil
}

// SignPod implements framework.SignPlugin.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	group, _ := engine.GroupOf(pod)
	return []fwk.SignFragment{{Key: Name, Value: group.String()}}, nil
}

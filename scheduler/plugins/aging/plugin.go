package aging

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangAging"

// Args are the arguments of the plugin GangAging.
type Args struct {
	// After is how long a gang waits for places before it gets a reservation,
	// by default 60s; 0s switches reservations off.
	After metav1.Duration `json:"after"`
}

// DefaultArgs are the arguments where a configuration sets none.
func DefaultArgs() Args { return Args{After: metav1.Duration{Duration: time.Minute}} }

// minAfter keeps reservations from being made before the engine has tried.
const minAfter = time.Second

// Validate implements args.Args.
func (a Args) Validate() error {
	if d := a.After.Duration; d < 0 || d > 0 && d < minAfter {
		return fmt.Errorf("after: %s is neither 0s nor %s or more", d, minAfter)
	}
	return nil
}

// Plugin makes reservations.
type Plugin struct{ controller *Controller }

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// NewPlugin returns the plugin for one profile. it is a frameworkruntime.PluginFactory.
func (c *Controller) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after[handle.ProfileName()] = a.After.Duration
	return &Plugin{controller: c}, nil
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

// PreFilter brings the reservations up to date with the snapshot of this cycle,
// before GangClaims reads what they claim. Without the victims of a preemption the snapshot shows room that is not there.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if !p.controller.claims.Simulating() && engine.FirstInCycle(state, Name) {
		if err := p.controller.Reconcile(ctx); err != nil { // it is not the fault of whoever is tried
			klog.FromContext(ctx).Error(err, "Cannot bring reservations up to date", "when trying", klog.KObj(pod))
		}
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreFilterExtensions implements fwk.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve ends the reservation of a gang when it is placed: its members would be
// charged for the reserved places and for themselves. What the pod promises is
// remembered: it can be written otherwise from now on.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		return nil
	}
	p.controller.claims.Promised(pod)
	if group, ok := engine.GroupOf(pod); ok {
		p.controller.placed(group)
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin. The place of a member that could not be
// bound is claimed as that of one that died.
func (p *Plugin) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// EventsToRegister names no events: the plugin refuses no pod.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// SignPod adds nothing: to the plugin all pods are alike.
func (p *Plugin) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

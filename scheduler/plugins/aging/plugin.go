package aging

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
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

// DefaultAfter is the default of Args.After.
const DefaultAfter = time.Minute

// minAfter keeps reservations from being made before the engine has tried.
const minAfter = time.Second

// ReadArgs returns the arguments in a configuration; errors name the field.
func ReadArgs(object runtime.Object) (Args, error) {
	a, err := args.Decode(object, Args{After: metav1.Duration{Duration: DefaultAfter}})
	if err != nil {
		return a, err
	}
	if d := a.After.Duration; d < 0 || d > 0 && d < minAfter {
		return a, fmt.Errorf("args.after: %s is neither 0s nor %s or more", d, minAfter)
	}
	return a, nil
}

// stateKey is where a cycle keeps the reservations that bind its pod.
const stateKey fwk.StateKey = Name

// Plugin keeps pods off reserved places.
type Plugin struct {
	keeper *Keeper
	now    func() time.Time
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// New makes the plugin for one profile. It is a runtime.PluginFactory.
func (k *Keeper) New(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := ReadArgs(object)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.after[handle.ProfileName()] = a.After.Duration
	factory := handle.SharedInformerFactory()
	k.source = engineSource{handle: handle, groups: factory.Scheduling().V1beta1().PodGroups().Lister(), pods: factory.Core().V1().Pods().Lister()}
	k.view = k.open(handle)
	return &Plugin{keeper: k, now: k.clock.Now}, nil
}

// engineSource is the source of the keeper of a real engine. Which profile's handle it
// has makes no difference.
type engineSource struct {
	handle fwk.Handle
	groups schedulinglisters.PodGroupLister
	pods   corelisters.PodLister
}

// Gangs implements Source.
func (e engineSource) Gangs() []Gang {
	groups, err := e.groups.List(labels.Everything())
	if err != nil {
		return nil // a lister of a cache cannot fail
	}
	var all []Gang
	for _, group := range groups {
		state, err := e.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
		if err != nil {
			continue // the engine has not heard of its members yet
		}
		all = append(all, Read(group, state))
	}
	return all
}

// Partly implements Source. It does not see what the engine only tries.
func (e engineSource) Partly(name types.NamespacedName) bool {
	group, err := e.groups.PodGroups(name.Namespace).Get(name.Name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil {
		return false
	}
	state, err := e.handle.PodGroupManager().PodGroupStates().Get(name.Namespace, name.Name)
	if err != nil {
		return false
	}
	n := state.ScheduledPodsCount()
	return n > 0 && n < int(group.Spec.SchedulingPolicy.Gang.MinCount)
}

// Pending implements Source.
func (e engineSource) Pending(pod *corev1.Pod) bool {
	now, err := e.pods.Pods(pod.Namespace).Get(pod.Name)
	return err == nil && now.UID == pod.UID && now.Spec.NodeName == "" && now.DeletionTimestamp == nil
}

// Wake implements Source.
func (e engineSource) Wake(pods map[string]*corev1.Pod) { e.handle.Activate(klog.Background(), pods) }

// Name implements framework.Plugin.
func (p *Plugin) Name() string { return Name }

// binding are the reservations that a pod has to heed.
type binding []Reservation

// Clone implements framework.StateData: reservations never change.
func (b binding) Clone() fwk.StateData { return b }

// PreFilter implements framework.PreFilterPlugin.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if err := p.keeper.Review(ctx); err != nil {
		return nil, fwk.AsStatus(err)
	}
	group := groupOf(pod)
	var heed binding
	for _, r := range p.keeper.Held() {
		if r.Group != group && priority(pod) <= r.Priority {
			heed = append(heed, r)
		}
	}
	if len(heed) == 0 || p.keeper.partly(group) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, heed)
	return nil, nil
}

// PreFilterExtensions implements framework.PreFilterPlugin. Filter looks at the
// node that it is given, so there is nothing to keep up to date.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter implements framework.FilterPlugin. Its answer is not final for the
// node, so that who may preempt is still looked at.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil // the pod's PreFilter found nothing to heed
	}
	heed, ok := data.(binding)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("state of %s is a %T", Name, data))
	}
	for _, r := range heed {
		if _, reserved := r.Nodes[info.Node().Name]; !reserved {
			continue
		}
		var running []*corev1.Pod
		for _, other := range info.GetPods() {
			running = append(running, other.GetPod())
		}
		if !r.Admits(pod, info.Node(), running, groupOf, p.now()) {
			p.keeper.turnAway(r.Group, pod)
			p.keeper.count.rejected.Inc()
			return fwk.NewStatus(fwk.Unschedulable, r.reason())
		}
	}
	return nil
}

// reason is without the node's name and without an age, so that all nodes of a
// reservation count together and the words stay the same.
func (r *Reservation) reason() string {
	return fmt.Sprintf("reserved for gang %s, which has waited since %s", DisplayName(r.Group), r.Since.UTC().Format(time.RFC3339))
}

// EventsToRegister implements framework.EnqueueExtensions: room that leaves
// something beside a reservation comes from pods that end and nodes that come.
// The end of a reservation itself wakes whom it turned away.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}},
	}, nil
}

// SignPod implements framework.SignPlugin: while nothing is reserved all pods
// are alike to the plugin, and otherwise no result may be reused.
func (p *Plugin) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(p.keeper.Held()) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "places are reserved")
	}
	return nil, nil
}

func groupOf(pod *corev1.Pod) types.NamespacedName {
	group, _ := engine.GroupOf(pod)
	return group
}

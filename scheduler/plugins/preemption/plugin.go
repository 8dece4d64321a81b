package preemption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	policylisters "k8s.io/client-go/listers/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// stateKey is where a cycle keeps the rooms that its pod has to keep off.
const stateKey fwk.StateKey = Name

// Plugin is GangPreemption in one profile.
type Plugin struct {
	preemptor *Preemptor
	handle    fwk.Handle
	args      Args
	budgets   policylisters.PodDisruptionBudgetLister
}

var (
	_ fwk.PreFilterPlugin          = &Plugin{}
	_ fwk.FilterPlugin             = &Plugin{}
	_ fwk.PostFilterPlugin         = &Plugin{}
	_ fwk.PodGroupPostFilterPlugin = &Plugin{}
	_ fwk.ReservePlugin            = &Plugin{}
	_ fwk.EnqueueExtensions        = &Plugin{}
	_ fwk.SignPlugin               = &Plugin{}
)

// NewPlugin makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (p *Preemptor) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := ReadArgs(object)
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle, p.pods = handle, factory.Core().V1().Pods().Lister()
	return &Plugin{preemptor: p, handle: handle, args: a, budgets: factory.Policy().V1().PodDisruptionBudgets().Lister()}, nil
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return Name }

// PreFilter implements fwk.PreFilterPlugin.
func (pl *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	heed := pl.preemptor.against(pod)
	if len(heed) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, heed)
	return nil, nil
}

// PreFilterExtensions implements fwk.PreFilterPlugin: pods that come and go in a
// dry run are seen on the node.
func (pl *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter implements fwk.FilterPlugin. A node without room for the pod is not ours
// to refuse. The words are the same for all nodes of a room.
func (pl *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil // there is nothing to heed
	}
	heed, ok := data.(views)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("state of %s is a %T", Name, data))
	}
	for _, v := range heed {
		if len(v.seats[node.Node().Name]) == 0 || !fits(pod, node) {
			continue
		}
		switch admits, err := v.admits(klog.FromContext(ctx), pod, node); {
		case err != nil:
			return fwk.AsStatus(err)
		case !admits:
			pl.preemptor.turnAway(v.key, pod)
			return fwk.NewStatus(fwk.Unschedulable, "room is being made for "+display(v.key))
		}
	}
	return nil
}

// Reserve implements fwk.ReservePlugin: room ends when whoever it was made for is
// placed. All members of a gang are decided on before anybody else.
func (pl *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() {
		pl.preemptor.used(klog.FromContext(ctx), pod)
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin. The place of a member is then held as
// that of one that died; for a pod on its own others may have to go again.
func (pl *Plugin) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// EventsToRegister implements fwk.EnqueueExtensions: what leaves something beside
// room that is kept. Its end wakes whom it turned away.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}},
	}, nil
}

// SignPod implements fwk.SignPlugin: while room is kept no result may be reused.
func (pl *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(pl.preemptor.against(pod)) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "room is being made")
	}
	return nil, nil
}

// PostFilter implements fwk.PostFilterPlugin: room for a pod on its own.
func (pl *Plugin) PostFilter(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := cause{key: keyOf(pod), pods: []*corev1.Pod{pod}, min: 1, priority: corev1helpers.PodPriority(pod)}
	if pod.Spec.PreemptionPolicy != nil {
		c.never = *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	}
	c.judge = func(ctx context.Context, seats map[string][]*corev1.Pod) (map[string][]*corev1.Pod, error) {
		return pl.judgePod(ctx, pod, seats)
	}
	_, what := pl.attempt(ctx, c)
	// The pod is not nominated, which would be a write: its room is kept without.
	return nil, fwk.NewStatus(fwk.Unschedulable, what)
}

// PodGroupPostFilter implements fwk.PodGroupPostFilterPlugin: room for a gang.
func (pl *Plugin) PodGroupPostFilter(ctx context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	c, ok, err := pl.causeOf(info)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if !ok {
		return nil, fwk.NewStatus(fwk.Unschedulable, "preemption: the gang has what it needs")
	}
	c.judge = func(ctx context.Context, _ map[string][]*corev1.Pod) (map[string][]*corev1.Pod, error) {
		assignments, status := schedule(ctx)
		if !status.IsSuccess() {
			return nil, nil
		}
		seats := map[string][]*corev1.Pod{}
		for _, a := range assignments.ProposedAssignments {
			seats[a.GetNodeName()] = append(seats[a.GetNodeName()], a.GetPod())
		}
		return seats, nil
	}
	makes, what := pl.attempt(ctx, c)
	if makes {
		return &fwk.PodGroupPostFilterResult{}, fwk.NewStatus(fwk.Success, what)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, what)
}

package preemption

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	policylisters "k8s.io/client-go/listers/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// Plugin is GangPreemption in one profile.
type Plugin struct {
	preemptor *Preemptor
	handle    fwk.Handle
	args      Args
	budgets   policylisters.PodDisruptionBudgetLister
}

var (
	_ fwk.PostFilterPlugin         = &Plugin{}
	_ fwk.PodGroupPostFilterPlugin = &Plugin{}
	_ fwk.ReservePlugin            = &Plugin{}
	_ fwk.EnqueueExtensions        = &Plugin{}
)

// NewPlugin makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (p *Preemptor) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := ReadArgs(object)
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	return &Plugin{preemptor: p, handle: handle, args: a, budgets: factory.Policy().V1().PodDisruptionBudgets().Lister()}, nil
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return Name }

// Reserve implements fwk.ReservePlugin: room ends when whoever it was made for is
// placed. All members of a gang are decided on before anybody else.
func (pl *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() {
		pl.preemptor.used(pod)
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin. The place of a member is then held as
// that of one that died; for a pod on its own others may have to go again.
func (pl *Plugin) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// EventsToRegister names no events: the plugin refuses no pod that fits.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// PostFilter implements fwk.PostFilterPlugin: room for a pod on its own.
func (pl *Plugin) PostFilter(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := cause{key: claims.ConsumerOf(pod), pods: []*corev1.Pod{pod}, min: 1, priority: corev1helpers.PodPriority(pod)}
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

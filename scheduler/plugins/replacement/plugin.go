package replacement

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// Name is the plugin's name in a configuration file.
const Name = "GangSlots"

// Weight is the weight of the plugin's scores: that a replacement goes where its
// place is counts for more than how well nodes are used.
const Weight = 50

// Where a cycle keeps what is held from its pod, what is held for it, and what
// a gang's cycle found for all its members.
const (
	againstKey fwk.StateKey = Name + "/against"
	ownKey     fwk.StateKey = Name + "/own"
	gangKey    fwk.StateKey = Name
)

// Plugin keeps pods off the places that are held for others.
type Plugin struct{ ledger *Ledger }

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PreScorePlugin    = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// New makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (l *Ledger) New(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := decode(object)
	if err != nil {
		return nil, err
	}
	profile, ok := handle.(interface{ ProfileName() string })
	if !ok {
		return nil, fmt.Errorf("plugin %s needs to know its profile", Name)
	}
	logger := klog.FromContext(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ttl[profile.ProfileName()] = a.HoldTTL.Duration
	l.view = view{snapshot: handle.SnapshotSharedLister(), pods: handle.SharedInformerFactory().Core().V1().Pods().Lister()}
	l.activate = func(pods map[string]*corev1.Pod) { handle.Activate(logger, pods) }
	return &Plugin{ledger: l}, nil
}

// Name implements framework.Plugin.
func (p *Plugin) Name() string { return Name }

// PreFilter implements framework.PreFilterPlugin.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	holds := p.holds(state)
	if group, ok := engine.GroupOf(pod); ok {
		if own := holds.Of(group); own != nil {
			state.Write(ownKey, own)
		}
	}
	against := holds.Against(pod)
	if against == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(againstKey, against)
	return nil, nil
}

// holds looks once for all members of a gang.
func (p *Plugin) holds(state fwk.CycleState) Holds {
	if !state.IsPodGroupSchedulingCycle() {
		return p.ledger.Held()
	}
	cycle := state.GetPodGroupSchedulingCycle()
	if known, err := cycle.Read(gangKey); err == nil {
		if holds, ok := known.(Holds); ok {
			return holds
		}
	}
	holds := p.ledger.Held()
	cycle.Write(gangKey, holds)
	return holds
}

// PreFilterExtensions implements framework.PreFilterPlugin: pods that come and
// go in a dry run are seen on the node.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter implements framework.FilterPlugin. A node without room for the pod is
// not ours to refuse, nor is one with room for the pod beside what is held. The
// refusal can be resolved: it has to be asked again when others are evicted.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	holds := read(state, againstKey)[node.Node().Name]
	if len(holds) == 0 || !fits(pod, node) || fits(pod, with(node, holds)) {
		return nil
	}
	holds = p.ledger.standing(holds, pod)
	what, ports := lacks(pod, with(node, holds))
	if len(what) == 0 && !ports {
		return nil
	}
	p.ledger.count.rejected.Inc()
	return fwk.NewStatus(fwk.Unschedulable, describe(node.Node().Name, holds, what))
}

// PreScore implements framework.PreScorePlugin.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if read(state, ownKey) == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score implements framework.ScorePlugin: a replacement goes where its place is.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	score := fwk.MinScore
	for _, hold := range read(state, ownKey)[node.Node().Name] {
		switch {
		case hold.Member == pod.Name:
			return fwk.MaxScore, nil
		case sameRequests(hold.pod.GetPod(), pod):
			score = fwk.MaxScore * 3 / 4
		}
	}
	return score, nil
}

// ScoreExtensions implements framework.ScorePlugin.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

func read(state fwk.CycleState, key fwk.StateKey) Holds {
	known, err := state.Read(key)
	if err != nil {
		return nil
	}
	holds, _ := known.(Holds)
	return holds
}

// Reserve implements framework.ReservePlugin. A gang is first tried on the
// snapshot; only what is meant is entered.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.ledger.reserve(group, pod, node)
	}
	return nil
}

// Unreserve implements framework.ReservePlugin.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if _, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.ledger.unreserve(pod)
	}
}

// EventsToRegister implements framework.EnqueueExtensions. What ends a hold by
// itself is told by Activate; these are the changes after which there may be
// none, or room beside it.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	hint := func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) {
		if p.ledger.anyLoose() {
			return fwk.Queue, nil
		}
		return fwk.QueueSkip, nil
	}
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add | fwk.Delete}, QueueingHintFn: hint},
		{Event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Update | fwk.Delete}, QueueingHintFn: hint},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}},
	}, nil
}

// SignPod implements framework.SignPlugin: pods of one gang and one priority
// have the same holds against them.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	group, _ := engine.GroupOf(pod)
	return []fwk.SignFragment{{Key: Name, Value: fmt.Sprintf("%s %d", group, corev1helpers.PodPriority(pod))}}, nil
}

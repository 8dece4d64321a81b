package replacement

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// Name is the plugin's name in a configuration file.
const Name = "GangReplacement"

// Weight is the weight of the plugin's scores: that a replacement goes where its
// place is counts for more than how well nodes are used.
const Weight = 50

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// HoldTTL is how long the place of a dead member is kept for its
	// replacement, counted from its death. The default is two minutes.
	HoldTTL metav1.Duration `json:"holdTTL"`
	// MaxPerNamespace is for how many members of one namespace places are kept at a
	// time, at most. What is kept costs the namespace no quota. The default is 100.
	MaxPerNamespace int64 `json:"maxPerNamespace"`
}

// DefaultArgs are the arguments where a configuration sets none.
func DefaultArgs() Args {
	return Args{HoldTTL: metav1.Duration{Duration: 2 * time.Minute}, MaxPerNamespace: 100}
}

// Validate implements args.Args.
func (a Args) Validate() error {
	if a.HoldTTL.Duration <= 0 {
		return fmt.Errorf("holdTTL: %s is not a positive duration (to hold nothing, disable plugin %s)", a.HoldTTL.Duration, Name)
	}
	if a.MaxPerNamespace <= 0 {
		return fmt.Errorf("maxPerNamespace: %d is not a positive number (to hold nothing, disable plugin %s)", a.MaxPerNamespace, Name)
	}
	return nil
}

// Plugin claims the places of dead members, and brings replacements there.
type Plugin struct{ tracker *Tracker }

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.PreScorePlugin    = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// NewPlugin returns the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (t *Tracker) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.args[handle.ProfileName()] = a
	return &Plugin{tracker: t}, nil
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

// PreFilter derives the claims from the snapshot of this cycle, before GangClaims
// reads them: no other extension point comes before every filter. A snapshot without the victims of a preemption shows
// places that members have not lost.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if !p.tracker.claims.Simulating() && engine.FirstInCycle(state, Name) {
		p.tracker.refresh()
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreFilterExtensions implements fwk.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// own are the claims for the members of the pod's gang, by node.
type own map[string][]claims.Claim

// Clone implements fwk.StateData: claims do not change.
func (o own) Clone() fwk.StateData { return o }

// PreScore looks up what is claimed for the pod's gang, once for all nodes. Where
// nothing is, there is nothing to score.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	claimed := own{}
	if group, ok := engine.GroupOf(pod); ok {
		for _, c := range p.tracker.claims.For(group) {
			if c.Kind == claims.Replacement {
				claimed[c.Node] = append(claimed[c.Node], c)
			}
		}
	}
	if len(claimed) == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(Name, claimed)
	return nil
}

// Score brings a replacement where its place is: nodes are compared in no other
// way than by scores.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(Name)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	claimed, ok := data.(own)
	if !ok {
		return 0, fwk.AsStatus(fmt.Errorf("state of %s is a %T", Name, data))
	}
	score := fwk.MinScore
	for _, c := range claimed[node.Node().Name] {
		switch {
		case c.Pod.Name == pod.Name:
			return fwk.MaxScore, nil
		case sameRequests(c.Pod, pod):
			score = fwk.MaxScore * 3 / 4
		}
	}
	return score, nil
}

// ScoreExtensions implements fwk.ScorePlugin: scores are comparable as they are.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// Reserve enters the place that was decided on for a member: its claim ends, and
// it is known before any informer shows the pod on its node. A gang is first tried
// on the snapshot; that is not entered.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.tracker.reserve(group, pod, node)
	}
	return nil
}

// Unreserve keeps the place of a member that could not be bound.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if _, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		p.tracker.unreserve(pod)
	}
}

// EventsToRegister names no events: the plugin refuses no pod.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// SignPod implements framework.SignPlugin.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return engine.SignAlone(pod)
}

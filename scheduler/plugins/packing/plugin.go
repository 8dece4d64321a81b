package packing

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Plugin is GangScore in one profile.
type Plugin struct {
	args  Args
	count *Counters
}

var (
	_ fwk.PreScorePlugin = &Plugin{}
	_ fwk.ScorePlugin    = &Plugin{}
	_ fwk.SignPlugin     = &Plugin{}
)

// New makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (c *Counters) New(_ context.Context, object runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, Args{})
	if err != nil {
		return nil, err
	}
	if err := a.validate(); err != nil {
		return nil, err
	}
	return &Plugin{args: a, count: c}, nil
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

const stateKey fwk.StateKey = Name

// wants is what a pod asks for, in the terms of this package.
type wants struct {
	gang types.NamespacedName // empty for a pod on its own
	// accelerators that it asks for; none asks for cpu and memory only.
	accelerators map[corev1.ResourceName]int64
	cpu, memory  int64
}

// Clone implements fwk.StateData; what a pod wants does not change.
func (w *wants) Clone() fwk.StateData { return w }

// PreScore implements fwk.PreScorePlugin.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	w := &wants{accelerators: map[corev1.ResourceName]int64{}}
	w.gang, _ = engine.GroupOf(pod)
	for name, quantity := range placement.Request(pod) {
		amount := placement.Amount(name, quantity)
		switch {
		case name == corev1.ResourceCPU:
			w.cpu = amount
		case name == corev1.ResourceMemory:
			w.memory = amount
		case amount > 0 && p.args.accelerator(name):
			w.accelerators[name] = amount
		}
	}
	state.Write(stateKey, w)
	p.count.count(w)
	return nil
}

// What the parts of a score are worth, of 100.
const (
	siblingShare = 20 // the node has members of the same gang
	emptyShare   = 30 // the node has no accelerators that the pod would keep others from
	fullShare    = 50 // the node is full with the pod on it
)

// Score implements fwk.ScorePlugin.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(stateKey)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	w, ok := data.(*wants)
	if !ok {
		return 0, nil
	}
	score := int64(0)
	if w.gang != (types.NamespacedName{}) && hasMember(node, w.gang) {
		score = siblingShare
	}
	switch {
	case len(w.accelerators) > 0:
		return score + int64((emptyShare+fullShare)*w.fullness(node)), nil
	case p.hasAccelerators(node):
		return score, nil
	case w.gang == (types.NamespacedName{}):
		return score + emptyShare + fullShare, nil // where it goes is the engine's preference
	}
	return score + emptyShare + int64(fullShare*w.fullness(node)), nil
}

// ScoreExtensions implements fwk.ScorePlugin: scores are comparable as they are.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod implements fwk.SignPlugin. What a pod asks for is signed by others.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	group, _ := engine.GroupOf(pod)
	return []fwk.SignFragment{{Key: Name, Value: group.String()}}, nil
}

// fullness is how much of what the pod asks for is in use on a node once the pod is there, from 0 to 1.
func (w *wants) fullness(node fwk.NodeInfo) float64 {
	used, total := node.GetRequested(), node.GetAllocatable()
	var sum float64
	kinds := 0
	add := func(used, total int64) {
		if total > 0 {
			sum += min(1, float64(used)/float64(total))
			kinds++
		}
	}
	for name, amount := range w.accelerators {
		add(used.GetScalarResources()[name]+amount, total.GetScalarResources()[name])
	}
	if len(w.accelerators) == 0 {
		add(used.GetMilliCPU()+w.cpu, total.GetMilliCPU())
		add(used.GetMemory()+w.memory, total.GetMemory())
	}
	if kinds == 0 {
		return 0
	}
	return sum / float64(kinds)
}

func (p *Plugin) hasAccelerators(node fwk.NodeInfo) bool {
	for name, amount := range node.GetAllocatable().GetScalarResources() {
		if amount > 0 && p.args.accelerator(name) {
			return true
		}
	}
	return false
}

func hasMember(node fwk.NodeInfo, gang types.NamespacedName) bool {
	for _, info := range node.GetPods() {
		if group, ok := engine.GroupOf(info.GetPod()); ok && group == gang {
			return true
		}
	}
	return false
}

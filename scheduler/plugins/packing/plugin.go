// Package packing keeps gangs together and accelerators free for pods that request them.
//
// The engine's own scoring spreads pods, so that the next one finds some room everywhere. Gangs need the opposite: large gaps on
// few nodes. The plugin GangPacking prefers the fullest nodes in terms of the accelerators that a pod requests; keeps pods that request
// for none off nodes that have some, as long as others do; and puts members of a gang alongside each other. What users prefer (node
// affinity, taints to avoid) still counts more. The planner chooses among the placements of a gang by the same preference; this
// plugin decides for pods on their own and for members that no plan covers.
package packing

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangPacking"

// Weight is how much the plugin counts unless a configuration sets another: more than the engine's preference for empty nodes,
// no more than what users prefer.
const Weight = 2

// Args are the arguments of the plugin GangPacking.
type Args struct {
	// Accelerators are the names of the resources that are scarce, such as nvidia.com/gpu. By default these are all extended
	// resources.
	Accelerators []string `json:"accelerators,omitempty"`
}

// Validate implements args.Args.
func (a Args) Validate() error {
	for i, name := range a.Accelerators {
		if !v1helper.IsExtendedResourceName(corev1.ResourceName(name)) {
			return fmt.Errorf("accelerators[%d]: %q is not the name of an extended resource, such as nvidia.com/gpu", i, name)
		}
		if slices.Contains(a.Accelerators[:i], name) {
			return fmt.Errorf("accelerators[%d]: %q is there twice", i, name)
		}
	}
	return nil
}

// accelerator reports whether a resource is scarce.
func (a Args) accelerator(name corev1.ResourceName) bool {
	if len(a.Accelerators) > 0 {
		return slices.Contains(a.Accelerators, string(name))
	}
	return v1helper.IsExtendedResourceName(name)
}

// What pods request: the values of the label requests.
const (
	requestsAccelerators = "accelerators"
	requestsNone         = "none"
)

// Counters are the plugin's metrics, one set for all profiles.
type Counters struct{ pods *metrics.CounterVec }

// NewCounters returns metrics that count nothing until they are registered.
func NewCounters() *Counters {
	return &Counters{pods: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "scored_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods for which nodes were compared by how they are packed, by what they request: accelerators (full nodes first) or none (off the nodes that have some).",
	}, []string{"requests"})}
}

// Register makes the metrics known to a registry.
func (c *Counters) Register(register func(...metrics.Registerable)) { register(c.pods) }

func (c *Counters) count(w *wants) {
	requests := requestsNone
	if len(w.accelerators) > 0 {
		requests = requestsAccelerators
	}
	c.pods.WithLabelValues(requests).Inc()
}

// Plugin is GangPacking in one profile.
type Plugin struct {
	args  Args
	count *Counters
}

var (
	_ fwk.PreScorePlugin = &Plugin{}
	_ fwk.ScorePlugin    = &Plugin{}
	_ fwk.SignPlugin     = &Plugin{}
)

// NewPlugin returns the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (c *Counters) NewPlugin(_ context.Context, object runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, Args{})
	if err != nil {
		return nil, err
	}
	return &Plugin{args: a, count: c}, nil
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

const stateKey fwk.StateKey = Name

// wants are the requests of a pod, in the terms of this package.
type wants struct {
	gang types.NamespacedName // empty for a pod on its own
	// accelerators that it requests; none requests cpu and memory only.
	accelerators map[corev1.ResourceName]int64
	cpu, memory  int64
}

// Clone implements fwk.StateData; what a pod wants does not change.
func (w *wants) Clone() fwk.StateData { return w }

// PreScore implements fwk.PreScorePlugin.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	w := &wants{accelerators: map[corev1.ResourceName]int64{}}
	w.gang, _ = engine.GroupOf(pod)
	for name, quantity := range request.Of(pod) {
		amount := request.Amount(name, quantity)
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

// SignPod implements fwk.SignPlugin. What a pod requests is signed by others.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return engine.SignAlone(pod)
}

// fullness is how much of what the pod requests is in use on a node once the pod is there, from 0 to 1.
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

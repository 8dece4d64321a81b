package scheduler

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
	"github.com/gangctl/gangctl/scheduler/plugins/spread"
)

const zoneKey = "zone"

func (r *rig) zoned(zone string, cpus int) {
	r.t.Helper()
	name := "node-" + zone
	r.node(name, cpus)
	node, err := r.server.CoreV1().Nodes().Get(r.t.Context(), name, metav1.GetOptions{})
	r.must(err)
	node = node.DeepCopy()
	node.Labels, node.ResourceVersion = map[string]string{zoneKey: zone}, r.version()
	_, err = r.server.CoreV1().Nodes().Update(r.t.Context(), node, metav1.UpdateOptions{})
	r.must(err)
}

// spreadOver has all pods with the label even over the zones.
func spreadOver(p *corev1.Pod) {
	p.Labels = maps.Clone(p.Labels)
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels["app"] = "even"
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "even"}},
	}}
}

// gangOn creates a gang whose members have what change gives them, its labels, too.
func (r *rig) gangOn(name string, members int, change func(*corev1.Pod)) (names []string) {
	r.t.Helper()
	for i := range members {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
		r.create(r.pod(names[i], DefaultName, labelled(name, members), change))
	}
	return names
}

// perNode is how many pods each node has.
func (r *rig) perNode(names ...string) map[string]int {
	r.t.Helper()
	n := map[string]int{}
	for _, name := range names {
		n[r.get(name).Spec.NodeName]++
	}
	return n
}

// Members on their planned nodes are not checked again, and are spread as their constraint requires; all other pods are checked.
func TestSpread(t *testing.T) {
	r := newRig(t)
	r.zoned("a", 8)
	r.zoned("b", 8)
	r.zoned("c", 3)
	p := r.startWhole(preemption.Name, aging.Name)
	for _, at := range spread.Points(p.handle.Framework().(framework.Framework).ListPlugins()) {
		if n := count(at.Enabled, spread.Name); n != 1 || count(at.Enabled, spread.Replaces) != 0 {
			t.Errorf("the plugins at one of its points are %v", at.Enabled)
		}
	}
	counted := countedBy(t, p)
	g := r.gangOn("g", 6, spreadOver)
	r.waitPlaced(g...)
	if got := counted(); !maps.Equal(got, map[string]float64{"plan": 6}) {
		t.Errorf("counted by %v", got)
	}
	if got := r.perNode(g...); !maps.Equal(got, map[string]int{"node-a": 2, "node-b": 2, "node-c": 2}) {
		t.Errorf("the gang is on %v", got)
	}
	full := r.pod("full", DefaultName)
	r.create(full, r.pod("fuller", DefaultName, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zoneKey: "c"} }))
	r.waitPlaced("full", "fuller")
	r.gangOn("uneven", 4, spreadOver)
	r.waitMessage("uneven-0", "topology")
	r.create(r.pod("solo-0", DefaultName, spreadOver), r.pod("solo-1", DefaultName, spreadOver))
	r.waitPlaced("solo-0", "solo-1")
	r.create(r.pod("solo-2", DefaultName, spreadOver))
	r.waitMessage("solo-2", "topology spread constraints")
	if n := r.placed("uneven-0", "uneven-1", "uneven-2", "uneven-3"); n != 0 {
		t.Errorf("%d members are placed ahead of the third zone by more than the skew", n)
	}
}

func count(plugins []schedulerconfig.Plugin, name string) (n int) {
	for _, q := range plugins {
		if q.Name == name {
			n++
		}
	}
	return n
}

// What a place that is held stands for counts in a plan, and not for the engine: the constraint is checked on the pods that are there.
func TestSpreadNextToAHeldPlace(t *testing.T) {
	r := newRig(t)
	r.startWhole(preemption.Name, aging.Name)
	r.zoned("a", 2)
	r.zoned("b", 8)
	in := func(zone string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			labelled("runs", 3)(p)
			p.Spec.NodeSelector = map[string]string{zoneKey: zone}
			p.Labels["app"] = map[string]string{"a": "even"}[zone]
		}
	}
	r.create(r.pod("runs-0", DefaultName, in("a")), r.pod("runs-1", DefaultName, in("a")), r.pod("runs-2", DefaultName, in("b")))
	r.waitPlaced("runs-0", "runs-1", "runs-2")
	r.delete("runs-0", "runs-1")
	r.gangOn("g", 3, spreadOver)
	r.waitMessage("g-0", "topology")
	if n := r.placed("g-0", "g-1", "g-2"); n != 0 {
		t.Errorf("%d members are placed while the first zone has none", n)
	}
}

// countedBy returns who counted what the constraints of pods select, and how often.
func countedBy(t *testing.T, p parts) func() map[string]float64 {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	p.spread.Register(registry.MustRegister)
	return func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				n[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
		return n
	}
}

// picky is a filter that the planner does not know.
type picky struct{ node string }

func (picky) Name() string { return "Picky" }

// Filter implements fwk.FilterPlugin.
func (p picky) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if node.Node().Name == p.node {
		return fwk.NewStatus(fwk.Unschedulable, "a filter refuses it")
	}
	return nil
}

// SignPod implements fwk.SignPlugin.
func (picky) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, nil }

// A plan of which one member is refused holds for the others no longer: they are checked, and not spread more unevenly than they may be.
func TestSpreadOfAPlanThatFails(t *testing.T) {
	r := newRig(t)
	r.others = frameworkruntime.Registry{"Picky": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return picky{"node-c"}, nil }}
	r.startWhole(preemption.Name, aging.Name)
	for _, zone := range []string{"a", "b", "c"} {
		r.zoned(zone, 4)
	}
	names := make([]string, 6)
	for i := range names {
		names[i] = fmt.Sprintf("g-%d", i)
		r.create(r.pod(names[i], DefaultName, labelled("g", 4), spreadOver))
	}
	r.waitMessage("g-0", "refuses")
	if n := r.placed(names...); n != 0 {
		t.Errorf("%d members are placed while one zone cannot be used: %v", n, r.perNode(names...))
	}
}

// The member that is tried before there is a plan gets the place that the plan fills first.
func TestSpreadNextToOthers(t *testing.T) {
	r := newRig(t)
	r.startWhole(preemption.Name, aging.Name)
	r.zoned("a", 4)
	r.zoned("b", 4)
	r.create(r.pod("other", DefaultName, func(p *corev1.Pod) {
		p.Labels, p.Spec.NodeSelector = map[string]string{"app": "even"}, map[string]string{zoneKey: "a"}
	}))
	r.waitPlaced("other")
	g := r.gangOn("g", 2, spreadOver)
	r.waitPlaced(g...)
	if got := r.perNode("g-0"); got["node-b"] != 1 {
		t.Errorf("the first member is on %v", got)
	}
}

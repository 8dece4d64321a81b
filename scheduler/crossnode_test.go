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
	"github.com/gangctl/gangctl/scheduler/plugins/crossnode"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
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
	for _, at := range crossnode.Points(p.handle.Framework().(framework.Framework).ListPlugins()) {
		if n := count(at.Enabled, crossnode.Spread.Name); n != 1 || count(at.Enabled, crossnode.Spread.Replaces) != 0 {
			t.Errorf("the plugins at one of its points are %v", at.Enabled)
		}
	}
	counted := checkedBy(t, p, crossnode.Spread)
	g := r.gangOn("g", 6, spreadOver)
	r.waitPlaced(g...)
	if got := counted(); !maps.Equal(got, map[string]float64{"plan": 6}) {
		t.Errorf("checked by %v", got)
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

// runsIn has a gang run, a member in each of some zones; those in zone a have the label app.
func (r *rig) runsIn(app string, zones ...string) {
	r.t.Helper()
	var names []string
	for i, zone := range zones {
		names = append(names, fmt.Sprint("runs-", i))
		r.create(r.pod(names[i], DefaultName, labelled("runs", len(zones)), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{zoneKey: zone}
			p.Labels["app"] = map[string]string{"a": app}[zone]
		}))
	}
	r.waitPlaced(names...)
}

// What a place that is held stands for counts in a plan, and not for the engine: the constraint is checked on the pods that are there.
func TestSpreadNextToAHeldPlace(t *testing.T) {
	r := newRig(t)
	r.startWhole(preemption.Name, aging.Name)
	r.zoned("a", 2)
	r.zoned("b", 8)
	r.runsIn("even", "a", "a", "b")
	r.delete("runs-0", "runs-1")
	r.gangOn("g", 3, spreadOver)
	r.waitMessage("g-0", "topology")
	if n := r.placed("g-0", "g-1", "g-2"); n != 0 {
		t.Errorf("%d members are placed while the first zone has none", n)
	}
}

// A place that is held for a pod that is gone is no pod to be near: members with affinity to it wait until it is there.
func TestAffinityToAHeldPlace(t *testing.T) {
	r := newRig(t)
	r.startWhole(preemption.Name, aging.Name)
	r.zoned("a", 4)
	r.zoned("b", 8)
	r.runsIn("db", "a", "b", "b")
	r.delete("runs-0")
	r.gangOn("g", 2, func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: zoneKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		}}}}
	})
	r.waitMessage("g-0", "affinity")
	if n := r.placed("g-0", "g-1"); n != 0 {
		t.Errorf("%d members are placed near nobody", n)
	}
}

// checkedBy returns who checked pods by a rule, and how often.
func checkedBy(t *testing.T, p parts, rule crossnode.Rule) func() map[string]float64 {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	p.crossNode.Register(registry.MustRegister)
	return func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				labels := map[string]string{}
				for _, pair := range m.GetLabel() {
					labels[pair.GetName()] = pair.GetValue()
				}
				if labels["plugin"] == rule.Name {
					n[labels["checked_by"]] = m.GetCounter().GetValue()
				}
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

// apartFrom keeps pods with the label app off the node of the pod, or out of its zone.
func apartFrom(app, topologyKey string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}}}
	}
}

// inApp gives a pod the label app.
func inApp(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = maps.Clone(p.Labels)
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels["app"] = app
	}
}

// Members on their planned nodes are not compared with all pods that have anti-affinity, and keep away from those that want them away, from each other, and
// from whom they want away; all other pods are compared.
func TestAntiAffinity(t *testing.T) {
	r := newRig(t)
	for _, zone := range []string{"a", "b", "c"} {
		r.zoned(zone, 8)
	}
	p := r.startWhole(preemption.Name, aging.Name)
	checked := checkedBy(t, p, crossnode.Affinity)
	in := func(zone string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zoneKey: zone} }
	}
	r.create(r.pod("keeps-off", DefaultName, apartFrom("noisy", zoneKey), in("a")), r.pod("quiet", DefaultName, inApp("quiet"), in("b")))
	r.waitPlaced("keeps-off", "quiet")
	if got := checked(); !maps.Equal(got, map[string]float64{"plugin": 2}) {
		t.Errorf("pods on their own are checked by %v", got)
	}
	noisy := r.gangOn("noisy", 4, inApp("noisy"))
	r.waitPlaced(noisy...)
	if got := r.perNode(noisy...); got["node-a"] != 0 {
		t.Errorf("who is kept off is on %v", got)
	}
	loners := r.gangOn("loners", 2, func(p *corev1.Pod) { inApp("loners")(p); apartFrom("loners", zoneKey)(p) })
	r.waitPlaced(loners...)
	if got := r.perNode(loners...); len(got) != 2 {
		t.Errorf("members that are to be apart are on %v", got)
	}
	careful := r.gangOn("careful", 3, apartFrom("quiet", zoneKey))
	r.waitPlaced(careful...)
	if got := r.perNode(careful...); got["node-b"] != 0 {
		t.Errorf("who keeps off others is on %v", got)
	}
	if got := checked(); !maps.Equal(got, map[string]float64{"plugin": 2, "plan": 9}) {
		t.Errorf("checked by %v", got)
	}
	r.gangOn("crowd", 4, func(p *corev1.Pod) { inApp("crowd")(p); apartFrom("crowd", zoneKey)(p) })
	r.waitMessage("crowd-0", "anti-affinity")
	r.create(r.pod("noisy-solo", DefaultName, inApp("noisy"), in("a")))
	r.waitMessage("noisy-solo", "anti-affinity")
	if n := r.placed("crowd-0", "crowd-1", "crowd-2", "crowd-3", "noisy-solo"); n != 0 {
		t.Errorf("%d pods are where others keep them off", n)
	}
}

// A gang that has no place is proven to have none, though filters of the engine are replaced by ours: unproven, it would be tried every ten seconds.
func TestProofsNextToOurFilters(t *testing.T) {
	r := newRig(t)
	r.node("n1", 2)
	p := r.startWhole(preemption.Name, aging.Name)
	registry := metrics.NewKubeRegistry()
	p.planner.Register(registry.MustRegister)
	r.gangOn("big", 3, func(*corev1.Pod) {})
	r.waitMessage("big-0", "fit")
	families, err := registry.Gather()
	r.must(err)
	plans := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "gangctl_scheduler_plans_total" {
				plans[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if plans["impossible"] == 0 || plans["unproven"] > 0 {
		t.Errorf("plans by result: %v", plans)
	}
}

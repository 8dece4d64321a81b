package scheduler

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/scheduler/plugins/aging"
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
	r.startWhole(preemption.Name, aging.Name)
	r.zoned("a", 8)
	r.zoned("b", 8)
	r.zoned("c", 3)
	g := r.gangOn("g", 6, spreadOver)
	r.waitPlaced(g...)
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

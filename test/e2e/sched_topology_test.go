package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// rackLabel is the node label of racks.
const rackLabel = "example.com/rack"

// TestTopology places gangs that must share a rack, of two with two nodes of 2 cpu each.
func TestTopology(t *testing.T) {
	t.Parallel()
	// A cluster of its own: the nodes are in racks.
	c := newCluster(t, "--nodes=4", "--cpu=2", "--gpus=0", "--run-for=0", "--operator=false", "--native-gangs", served)
	c.racks(t)
	for _, w := range some("native", "scheduler-plugins", "labels", "pdb", "kai") {
		t.Run(w.name, func(t *testing.T) {
			g := c.with(t, w)
			g.defined()
			g.sharesRack()
			if field, ok := topologyFields()[w.name]; ok {
				g.sharesRackByField(field)
			}
			g.partsShareRacks(inSlices())
			if w.name == "kai" {
				g.partsShareRacks(inSubGroups())
			}
		})
	}
}

// racks puts every two nodes into one rack.
func (c *cluster) racks(t *testing.T) {
	t.Helper()
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i, n := range nodes.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"r%d"}}}`, rackLabel, i/2+1)
		_, err := c.client.CoreV1().Nodes().Patch(t.Context(), n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
	}
}

// racksOf are the racks in which pods have nodes, each once.
func (c *cluster) racksOf(t *testing.T, names ...string) []string {
	t.Helper()
	var racks []string
	for _, name := range names {
		pod, err := c.client.CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		must(t, err)
		racks = append(racks, node.Labels[rackLabel])
	}
	slices.Sort(racks)
	return slices.Compact(racks)
}

func (g team) sharesRack() {
	t := g.t
	inRack := func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, gang.TopologyRequired, rackLabel) }
	first, second, dies, large := g.wire.name+"-first", g.wire.name+"-second", g.wire.name+"-dies", g.wire.name+"-large"
	defer func() { g.sweep(t); g.drop(first, second, dies, large) }()

	// The first gang leaves one cpu in its rack, so that the second, of four, goes to the other.
	g.declare(first, 3)
	g.members(first, 3, 3, inRack)
	g.placed(t, g.names(first, 3)...)
	g.declare(second, 4)
	g.members(second, 4, 4, inRack)
	g.placed(t, g.names(second, 4)...)
	a, b := g.racksOf(t, g.names(first, 3)...), g.racksOf(t, g.names(second, 4)...)
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("the gangs are in the racks %v and %v", a, b)
	}

	// A member is lost, and its replacement goes to the rack of the others.
	gone := g.names(first, 3)[2]
	g.kill(t, gone)
	again := plain(gone+"-again", g.scheduler, "1")
	g.setGroup(again, first, 3)
	inRack(again)
	g.create(t, again)
	g.placed(t, again.Name)
	if rack := g.racksOf(t, again.Name); rack[0] != a[0] {
		t.Errorf("the replacement is in %v, the others are in %v", rack, a)
	}

	g.nodeDies(dies, inRack)

	// Six would fit on all nodes, and no rack has room for them.
	g.sweep(t)
	g.declare(large, 6)
	g.members(large, 6, 6, inRack)
	g.waitMessage(t, large+"-0", "all 6 members must share one value of "+rackLabel+": r1 has room for 4, r2 for 4")
	if n := g.bound(t, g.names(large, 6)...); n != 0 {
		t.Errorf("%d of 6 members have nodes", n)
	}
}

// topologyFields are the fields of group objects that have all members share a rack, by dialect.
func topologyFields() map[string]func(spec map[string]any) {
	return map[string]func(map[string]any){
		"native": func(spec map[string]any) {
			spec["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": rackLabel}}}
		},
		"kai": func(spec map[string]any) {
			spec["topologyConstraint"] = map[string]any{"requiredTopologyLevel": rackLabel}
		},
	}
}

// sharesRackByField: the rule is in the dialect's own field, and the pods have nothing of it.
func (g team) sharesRackByField(field func(spec map[string]any)) {
	t := g.t
	first, second, large := g.wire.name+"-field-first", g.wire.name+"-field-second", g.wire.name+"-field-large"
	defer func() { g.sweep(t); g.drop(first, second, large) }()
	declare := func(name string, count int) {
		g.declareGroup(name, count, func(u *unstructured.Unstructured) {
			spec, _ := u.Object["spec"].(map[string]any)
			field(spec)
		})
		g.members(name, count, count)
	}
	declare(first, 3)
	g.placed(t, g.names(first, 3)...)
	declare(second, 4)
	g.placed(t, g.names(second, 4)...)
	if a, b := g.racksOf(t, g.names(first, 3)...), g.racksOf(t, g.names(second, 4)...); len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("the gangs are in the racks %v and %v", a, b)
	}
	g.sweep(t)
	declare(large, 6)
	g.waitMessage(t, large+"-0", "all 6 members must share one value of "+rackLabel+": r1 has room for 4, r2 for 4")
}

// nodeDies: a gang has three of the four CPUs of its rack, and the other rack is free. The node with one of its members dies. What replaces that member
// has no room on the other node, and must not go to the other rack. It waits, and reports why, until a node comes to its rack.
func (g team) nodeDies(name string, inRack func(*corev1.Pod)) {
	t := g.t
	g.sweep(t)
	g.declare(name, 3)
	g.members(name, 3, 3, inRack)
	members := g.names(name, 3)
	g.placed(t, members...)
	rack := g.racksOf(t, members...)[0]
	on := map[string][]string{}
	for _, member := range members {
		pod, err := g.client.CoreV1().Pods(space).Get(t.Context(), member, metav1.GetOptions{})
		must(t, err)
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], member)
	}
	for node, lost := range on {
		if len(lost) == 1 { // the other node has no room for what replaces it
			g.replacedOnceNodeReturns(name, lost[0], node, rack, inRack)
		}
	}
}

// replacedOnceNodeReturns: the member of a gang is lost with its node, and what replaces it waits until the node is there again.
func (g team) replacedOnceNodeReturns(name, lost, node, rack string, inRack func(*corev1.Pod)) {
	t := g.t
	g.kill(t, lost) // before its node goes: a gang with a member on a node that is gone, bound just now, would be rolled back
	must(t, g.client.CoreV1().Nodes().Delete(t.Context(), node, now()))
	returns := sync.OnceFunc(func() {
		if _, stderr, err := g.Run("node", "add", node, "--cpu=2", "--gpus=0", "--label="+rackLabel+"="+rack); err != nil {
			t.Errorf("node add: %v\n%s", err, stderr)
		}
	})
	defer returns() // others need it, too
	g.knowsNodes(t, g.scheduler)
	again := plain(name+"-again", g.scheduler, "1")
	g.setGroup(again, name, 3)
	inRack(again)
	g.create(t, again)
	g.waitMessage(t, again.Name, "its other members are at "+rackLabel+"="+rack+", where there is room for 0 of 1")
	returns()
	g.placed(t, again.Name)
	if racks := g.racksOf(t, again.Name); racks[0] != rack {
		t.Errorf("the replacement is in %v, the others are in %s", racks, rack)
	}
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	for _, w := range some("native", "scheduler-plugins", "labels", "pdb") {
		t.Run(w.name, func(t *testing.T) {
			g := c.with(t, w)
			g.defined()
			g.sharesRack()
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
	first, second, large := g.wire.name+"-first", g.wire.name+"-second", g.wire.name+"-large"
	defer func() { g.sweep(t); g.drop(first, second, large) }()

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

	g.nodeDies(first, a[0], inRack)

	// Six would fit on all nodes, and no rack has room for them.
	g.sweep(t)
	g.declare(large, 6)
	g.members(large, 6, 6, inRack)
	g.waitMessage(t, large+"-0", "all 6 members must share one value of "+rackLabel+": r1 has room for 4, r2 for 4")
	if n := g.bound(t, g.names(large, 6)...); n != 0 {
		t.Errorf("%d of 6 members have nodes", n)
	}
}

// nodeDies: a gang of three has three of the four CPUs of its rack. A node of the rack dies with what is on it; what replaces that has no more room
// there than the other node leaves, and none elsewhere, where one would be free. It waits, and reports why, until the node is back.
func (g team) nodeDies(gang, rack string, inRack func(*corev1.Pod)) {
	t := g.t
	list, err := g.client.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var node string
	var lost []string
	for _, pod := range list.Items { // the node with one member of the three: the other has no room left
		on := slices.DeleteFunc(slices.Clone(list.Items), func(other corev1.Pod) bool { return other.Spec.NodeName != pod.Spec.NodeName })
		if strings.HasPrefix(pod.Name, gang) && len(on) == 1 {
			node, lost = pod.Spec.NodeName, append(lost, pod.Name)
		}
	}
	if len(lost) != 1 {
		t.Fatalf("no node has one member of %s: %v", gang, lost)
	}
	g.kill(t, g.wire.name+"-second-0") // a free CPU in the other rack
	must(t, g.client.CoreV1().Nodes().Delete(t.Context(), node, now()))
	g.kill(t, lost[0])
	again := plain(gang+"-after", g.scheduler, "1")
	g.setGroup(again, gang, 3)
	inRack(again)
	g.create(t, again)
	g.waitMessage(t, again.Name, rackLabel)
	if _, stderr, err := g.Run("node", "add", node, "--cpu=2", "--gpus=0", "--label="+rackLabel+"="+rack); err != nil {
		t.Fatalf("node add: %v\n%s", err, stderr)
	}
	g.placed(t, again.Name)
	if racks := g.racksOf(t, again.Name); racks[0] != rack {
		t.Errorf("the replacement is in %v, the others are in %s", racks, rack)
	}
}

package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The cluster of a later moment is the one that is built of its objects, and keeps what is known of nodes that have not changed.
func TestLater(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var now Objects
	for i := range 20 {
		now.Nodes = append(now.Nodes, aNode(fmt.Sprint("n", i), amounts("cpu", 8, "gpu", i%3)))
		for j := range 3 {
			now.Pods = append(now.Pods, aPod(fmt.Sprint("p", i, "-", j), amounts("cpu", 1+j), on(fmt.Sprint("n", i))))
		}
	}
	c := NewCluster(now)
	for step := range 300 {
		before, nodes := now, map[string]bool{}
		now.Nodes, now.Pods = slices.Clone(now.Nodes), slices.Clone(now.Pods)
		for range random.IntN(3) {
			nodes[change(random, &now, step)] = true
		}
		later, built := c.Later(now), NewCluster(now)
		if !slices.Equal(later.Nodes(), built.Nodes()) || !reflect.DeepEqual(later.podNodes.all, built.podNodes.all) || !reflect.DeepEqual(later.byName, built.byName) {
			t.Fatalf("step %d: the nodes or their pods differ", step)
		}
		for i, n := range later.nodes {
			if !reflect.DeepEqual(later.names.amountsOf(n), built.names.amountsOf(built.nodes[i])) {
				t.Errorf("step %d, node %s: %v, want %v", step, n.obj.Name, later.names.amountsOf(n), built.names.amountsOf(built.nodes[i]))
			}
			if was, known := c.byName[n.obj.Name]; known && !nodes[n.obj.Name] && c.nodes[was] != n {
				t.Errorf("step %d: node %s was built again", step, n.obj.Name)
			}
		}
		earlier := NewCluster(before)
		for i, n := range earlier.nodes {
			if !reflect.DeepEqual(earlier.names.amountsOf(n), c.names.amountsOf(c.nodes[i])) {
				t.Errorf("step %d: node %s of the earlier cluster has changed", step, n.obj.Name)
			}
		}
		c = later
	}
}

// amountsOf are those of a node by resource: what it has, and what is in use.
func (n *names) amountsOf(of *node) map[corev1.ResourceName][2]int64 {
	out := map[corev1.ResourceName][2]int64{}
	for i, name := range n.list {
		if i < len(of.alloc) && of.alloc[i] > 0 {
			out[name] = [2]int64{of.alloc[i], of.used[i]}
		}
	}
	return out
}

// change changes something, and returns the node that it concerns.
func change(random *rand.Rand, o *Objects, step int) string {
	at := random.IntN(len(o.Nodes))
	name := o.Nodes[at].Name
	switch random.IntN(5) {
	case 0: // another object of the same content
		o.Nodes[at] = o.Nodes[at].DeepCopy()
	case 1:
		o.Nodes[at] = aNode(name, amounts("cpu", 8, fmt.Sprint("example.com/r", random.IntN(5)), 1))
	case 2:
		o.Pods = append(o.Pods, aPod(fmt.Sprint("new", step, "-", len(o.Pods)), amounts("cpu", 1, "gpu", 1), on(name)))
	case 3:
		o.Pods = slices.DeleteFunc(o.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name && random.IntN(2) == 0 })
	case 4:
		o.Nodes[at] = aNode(fmt.Sprint(name, "x"), amounts("cpu", 4))
	}
	return name
}

// Resources of which users thought, and which are gone, are not kept for good.
func TestLaterForgetsResources(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n", amounts("cpu", 8))}})
	for i := range 10 * maxKept {
		p := aPod("p", amounts("cpu", 1, fmt.Sprint("example.com/r", i), 1), on("n"))
		c = c.Later(Objects{Nodes: c.Nodes(), Pods: []*corev1.Pod{p}})
		if n := len(c.names.list); n > maxKept+8 {
			t.Fatalf("%d resources are known", n)
		}
	}
}

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
func TestKnown(t *testing.T) {
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
		later, built := c.Known().Cluster(now), NewCluster(now)
		if !slices.Equal(later.names.list, built.names.list) || !slices.Equal(later.Nodes(), built.Nodes()) || !reflect.DeepEqual(later.podNodes.all, built.podNodes.all) || !reflect.DeepEqual(later.byName, built.byName) {
			t.Fatalf("step %d: the resources, the nodes or their pods differ", step)
		}
		for i, n := range later.nodes {
			if !slices.Equal(n.alloc, built.nodes[i].alloc) || !slices.Equal(n.used, built.nodes[i].used) {
				t.Errorf("step %d, node %s: %v and %v, want %v and %v", step, n.obj.Name, n.alloc, n.used, built.nodes[i].alloc, built.nodes[i].used)
			}
			if was, known := c.byName[n.obj.Name]; known && !nodes[n.obj.Name] && c.nodes[was].info != n.info {
				t.Errorf("step %d: node %s was built again", step, n.obj.Name)
			}
		}
		for i, n := range NewCluster(before).nodes {
			if !slices.Equal(n.alloc, c.nodes[i].alloc) || !slices.Equal(n.used, c.nodes[i].used) {
				t.Errorf("step %d: node %s of the earlier cluster has changed", step, n.obj.Name)
			}
		}
		c = later
	}
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

// Resources of which users thought are not numbered, and those that nodes do not offer any more are not kept.
func TestKnownForgetsResources(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n", amounts("cpu", 8))}})
	for i := range 10 * maxKept {
		p := aPod("p", amounts("cpu", 1, fmt.Sprint("example.com/r", i), 1), on("n"))
		n := aNode("n", amounts("cpu", 8, fmt.Sprint("example.com/n", i), 1))
		c = c.Known().Cluster(Objects{Nodes: []*corev1.Node{n}, Pods: []*corev1.Pod{p}})
		if n := len(c.names.list); n != 5 {
			t.Fatalf("%d resources are known", n)
		}
	}
}

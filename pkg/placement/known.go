package placement

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Known is what is known of the nodes of a snapshot, for one of a later moment. The zero value knows nothing.
type Known struct {
	names  *names
	nodes  []*node
	byName map[string]int
}

// Known returns what is known of the nodes.
func (c *Cluster) Known() Known { return Known{c.names, c.nodes, c.byName} }

// Cluster builds a snapshot. A node that is the same object, with the same pods, is not worked out again.
func (k Known) Cluster(objects Objects) *Cluster {
	c := &Cluster{objects: &objects, byName: map[string]int{}, podNodes: podNodes{all: make(map[types.UID]string, len(objects.Pods))}, store: &store{}}
	unique := map[string]*corev1.Node{}
	for _, n := range objects.Nodes {
		unique[n.Name] = n
	}
	pods := map[string][]*corev1.Pod{}
	for _, p := range objects.Pods {
		if Holds(p) && unique[p.Spec.NodeName] != nil {
			pods[p.Spec.NodeName] = append(pods[p.Spec.NodeName], p)
		}
	}
	parsed, amounts := podInfos{}, map[uintptr]*framework.Resource{}
	for _, name := range slices.Sorted(maps.Keys(unique)) {
		on := pods[name]
		slices.SortFunc(on, comparePods)
		on = slices.CompactFunc(on, func(a, b *corev1.Pod) bool { return PodID(a) == PodID(b) })
		for _, p := range on {
			c.podNodes.all[PodID(p)] = name
		}
		c.byName[name] = len(c.nodes)
		n := k.same(unique[name], on)
		if n == nil {
			n = newNode(unique[name], parsed.all(on))
			// Nodes whose amounts are one object, as in a snapshot of a large cluster, share what is made of it.
			shape := reflect.ValueOf(n.obj.Status.Allocatable).Pointer()
			if known := amounts[shape]; known != nil {
				n.info.Allocatable = known
			}
			amounts[shape] = n.info.Allocatable
		}
		c.nodes = append(c.nodes, n)
	}
	k.numberAs(c)
	return c
}

// same returns what is known of a node that is the same object, with the same pods; nil for any other.
func (k Known) same(obj *corev1.Node, pods []*corev1.Pod) *node {
	at, known := k.byName[obj.Name]
	if !known || k.nodes[at].obj != obj || len(k.nodes[at].info.Pods) != len(pods) {
		return nil
	}
	for i, p := range k.nodes[at].info.Pods {
		if p.GetPod() != pods[i] {
			return nil
		}
	}
	return k.nodes[at]
}

// numberAs numbers the resources of a cluster. Where they are others than before, or in another order, no vector is kept: what is known of a cluster does
// not depend on what was there earlier.
func (k Known) numberAs(c *Cluster) {
	c.names = newNames()
	for _, n := range c.nodes {
		c.names = c.names.with(n.info.Allocatable)
	}
	if k.names != nil && !slices.Equal(k.names.list, c.names.list) {
		for i, n := range c.nodes {
			c.nodes[i] = &node{obj: n.obj, info: n.info}
		}
	}
	c.number()
}

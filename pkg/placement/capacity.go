package placement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// NodeSlots is how many members of a role fit on a node alone.
type NodeSlots struct {
	// Node is the name of the node.
	Node string
	// Slots is how many members fit there together, with nothing else added.
	Slots int64
}

// Slots returns the nodes that take at least one such pod and how many of them each takes at most limit, ordered by name. It
// looks at each node alone: spread and affinity across nodes do not limit the number.
func Slots(c *Cluster, pod *corev1.Pod, limit int32, opts Options) []NodeSlots {
	t := newTask(context.Background(), c, Gang{Roles: []Role{{Pod: pod, Count: limit}}}, opts)
	t.relate()
	t.survey()
	out := make([]NodeSlots, 0, len(t.sites))
	for _, s := range t.sites {
		out = append(out, NodeSlots{Node: s.n.obj.Name, Slots: int64(s.slots[0])})
	}
	return out
}

// Free returns what is left of a node: allocatable less what its pods are charged, `pods` included. Amounts are negative
// on an overcommitted node. It is nil for an unknown node.
func (c *Cluster) Free(node string) corev1.ResourceList {
	i, ok := c.byName[node]
	if !ok {
		return nil
	}
	n := c.nodes[i]
	out := corev1.ResourceList{}
	for pos, name := range c.names.list {
		if alloc, used := n.alloc.at(pos), n.used.at(pos); alloc != 0 || used != 0 {
			out[name] = Quantity(name, alloc-used)
		}
	}
	return out
}

// Total returns what a node has in all, allocatable of the resources that this package counts. It is nil for an unknown node.
func (c *Cluster) Total(node string) corev1.ResourceList {
	i, ok := c.byName[node]
	if !ok {
		return nil
	}
	out := corev1.ResourceList{}
	for pos, name := range c.names.list {
		if alloc := c.nodes[i].alloc.at(pos); alloc != 0 {
			out[name] = Quantity(name, alloc)
		}
	}
	return out
}

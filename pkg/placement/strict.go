package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// AsScheduled returns the cluster as kube-scheduler judges it, which looks at neither the Ready condition nor the deletion of
// a node, only at its taints. What is impossible there is impossible for it; c itself if no node makes a difference.
func (c *Cluster) AsScheduled() *Cluster {
	strict := func(n *node) bool { return n.obj.DeletionTimestamp != nil || ready(n.obj) != corev1.ConditionTrue }
	if !slices.ContainsFunc(c.nodes, strict) {
		return c
	}
	return c.MapNodes(func(n *corev1.Node) *corev1.Node {
		if n.DeletionTimestamp == nil && ready(n) == corev1.ConditionTrue {
			return n
		}
		n = n.DeepCopy()
		n.DeletionTimestamp = nil
		n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		return n
	})
}

// Unused is how much of a resource is left on all nodes together, whether or not anybody may use them, in the unit of Quantity.
// Nodes that are overcommitted count as full.
func (c *Cluster) Unused(name corev1.ResourceName) int64 {
	pos, known := c.names.index[name]
	if !known {
		return 0
	}
	var sum int64
	for _, n := range c.nodes {
		sum += max(0, n.alloc.at(pos)-n.used.at(pos))
	}
	return sum
}

package placement

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// WithNodes returns the cluster with the given nodes: one of a known name replaces the node and keeps its pods, the others
// are new and empty.
func (c *Cluster) WithNodes(nodes ...*corev1.Node) *Cluster {
	out := c.copy()
	fresh := map[string]*node{}
	for _, obj := range nodes {
		if at, known := c.byName[obj.Name]; known {
			out.nodes[at] = newNode(obj, c.nodes[at].info.Pods)
		} else {
			fresh[obj.Name] = newNode(obj, nil)
		}
	}
	if len(fresh) > 0 {
		out.nodes = slices.AppendSeq(out.nodes, maps.Values(fresh))
		out.place()
	}
	out.number()
	return out
}

// WithoutNodes returns the cluster without the nodes of these names and without the pods on them.
func (c *Cluster) WithoutNodes(names ...string) *Cluster {
	out := c.copy()
	out.nodes = slices.DeleteFunc(out.nodes, func(n *node) bool { return slices.Contains(names, n.obj.Name) })
	out.place()
	out.number()
	return out
}

// place gives the nodes their positions, by name.
func (c *Cluster) place() {
	slices.SortFunc(c.nodes, func(a, b *node) int { return cmp.Compare(a.obj.Name, b.obj.Name) })
	c.byName = make(map[string]int, len(c.nodes))
	for i, n := range c.nodes {
		c.byName[n.obj.Name] = i
	}
}

// MapNodes returns the cluster with every node replaced by what f makes of it; f returns its argument for a node that
// stays as it is, and must not change the argument itself. See Uncordoned, Repaired and AtCapacity.
func (c *Cluster) MapNodes(f func(*corev1.Node) *corev1.Node) *Cluster {
	out := c.copy()
	for i, n := range c.nodes {
		if obj := f(n.obj); obj != n.obj {
			out.nodes[i] = newNode(obj, n.info.Pods)
		}
	}
	out.number()
	return out
}

// Ideal returns the cluster at its best: only the pods that keep accepts, every node uncordoned, Ready and with all devices
// of its capacity. A gang without a placement there is too big for the cluster.
func (c *Cluster) Ideal(keep func(*corev1.Pod) bool) *Cluster {
	return c.Emptied(keep).MapNodes(func(n *corev1.Node) *corev1.Node { return AtCapacity(Repaired(Uncordoned(n))) })
}

// DaemonSetPod tells whether a DaemonSet owns the pod; such pods stay for ever. Mirror pods of static manifests, owned by
// their Node, count too.
func DaemonSetPod(p *corev1.Pod) bool {
	for _, o := range p.OwnerReferences {
		if o.Kind == "DaemonSet" || o.Kind == "Node" {
			return true
		}
	}
	return false
}

package fit

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// WithNodes returns the cluster with the given nodes: one of a known name replaces the node and keeps its pods, the others
// are new and empty.
func (c *Cluster) WithNodes(nodes ...*corev1.Node) *Cluster {
	byName := map[string]*node{}
	for _, n := range c.nodes {
		byName[n.obj.Name] = n
	}
	for _, obj := range nodes {
		var pods []fwk.PodInfo
		if old := byName[obj.Name]; old != nil {
			pods = old.info.Pods
		}
		byName[obj.Name] = newNode(obj, pods)
	}
	return c.rebuilt(byName)
}

// WithoutNodes returns the cluster without the nodes of these names and without the pods on them.
func (c *Cluster) WithoutNodes(names ...string) *Cluster {
	byName := map[string]*node{}
	for _, n := range c.nodes {
		if !slices.Contains(names, n.obj.Name) {
			byName[n.obj.Name] = n
		}
	}
	return c.rebuilt(byName)
}

// rebuilt returns a Cluster of these nodes, with new positions.
func (c *Cluster) rebuilt(byName map[string]*node) *Cluster {
	out := &Cluster{objects: c.objects, names: c.names, byName: make(map[string]int, len(byName)), where: c.where, store: c.store}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out.byName[name] = len(out.nodes)
		out.nodes = append(out.nodes, byName[name])
	}
	out.number()
	return out
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

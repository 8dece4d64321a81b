package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// copy returns a Cluster that shares all nodes with c.
func (c *Cluster) copy() *Cluster {
	return &Cluster{objects: c.objects, names: c.names, nodes: slices.Clone(c.nodes), byName: c.byName, where: c.where, store: c.store}
}

// Without returns the cluster as if the pods were gone. UIDs that hold nothing are ignored. A pod without a UID is known
// by "namespace/name".
func (c *Cluster) Without(pods ...types.UID) *Cluster {
	gone := make(map[types.UID]bool, len(pods))
	touched := make([]bool, len(c.nodes))
	for _, uid := range pods {
		if i, ok := c.find(uid); ok {
			gone[uid], touched[i] = true, true
		}
	}
	out := c.copy()
	for i, n := range c.nodes {
		if touched[i] {
			out.nodes[i] = n.keep(func(p *corev1.Pod) bool { return !gone[podID(p)] })
		}
	}
	out.number()
	return out
}

// Emptied returns the cluster without the pods that keep refuses. With DaemonSetPod as keep it is the cluster at rest.
func (c *Cluster) Emptied(keep func(*corev1.Pod) bool) *Cluster {
	out := c.copy()
	for i, n := range c.nodes {
		out.nodes[i] = n.keep(keep)
	}
	out.number()
	return out
}

// holds tells whether a pod is on the node.
func (n *node) holds(uid types.UID) bool {
	return slices.ContainsFunc(n.info.Pods, func(p fwk.PodInfo) bool { return podID(p.GetPod()) == uid })
}

// keep returns the node with only the pods that f accepts; n itself if these are all.
func (n *node) keep(f func(*corev1.Pod) bool) *node {
	left := make([]fwk.PodInfo, 0, len(n.info.Pods))
	for _, p := range n.info.Pods {
		if f(p.GetPod()) {
			left = append(left, p)
		}
	}
	if len(left) == len(n.info.Pods) {
		return n
	}
	return n.holding(left)
}

// With returns the cluster with more pods on it, each on the node of its spec.nodeName. Pods that hold nothing, that are
// there already, or whose node is unknown, are ignored.
func (c *Cluster) With(pods ...*corev1.Pod) *Cluster {
	out := c.copy()
	var fresh []*corev1.Pod
	added := map[int][]fwk.PodInfo{}
	done := map[types.UID]bool{}
	for _, p := range pods {
		id := podID(p)
		at, known := c.byName[p.Spec.NodeName]
		was, seen := c.find(id)
		if !known || !Holds(p) || done[id] || seen && c.nodes[was].holds(id) {
			continue
		}
		done[id] = true
		fresh = append(fresh, p)
		added[at] = append(added[at], podInfo(p))
	}
	out.where = c.where.with(fresh)
	for i, more := range added {
		out.nodes[i] = c.nodes[i].holding(slices.Concat(c.nodes[i].info.Pods, more))
	}
	out.number()
	return out
}

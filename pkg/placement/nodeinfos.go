package placement

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// FromNodeInfos builds a snapshot from that of a running scheduler, with the pods that it has assumed. Nodes whose generation is
// that of the previous snapshot are taken over from there, so that the cost is that of what changed; previous may be nil. rest
// holds what a pod's volumes and claims refer to (its Nodes and Pods are not looked at); passing the same pointer again keeps what
// was prepared from it.
//
// The NodeInfos are copied: the scheduler may go on changing its own.
func FromNodeInfos(previous *Cluster, nodes []fwk.NodeInfo, rest *Objects) *Cluster {
	c := &Cluster{objects: rest, names: newNames(), where: where{all: map[types.UID]string{}}, byName: map[string]int{}, store: &store{}}
	if previous != nil {
		c.names = previous.names
		if previous.objects == rest {
			c.store = previous.store
		}
	}
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b fwk.NodeInfo) int { return cmp.Compare(a.Node().Name, b.Node().Name) })
	same := previous != nil && len(previous.nodes) == len(sorted)
	for i, info := range sorted {
		name := info.Node().Name
		same = same && previous.nodes[i].obj.Name == name
		c.byName[name] = i
		c.nodes = append(c.nodes, previous.taken(info))
	}
	if same { // positions are as before, so only pods of changed nodes move
		c.byName, c.where.all = previous.byName, maps.Clone(previous.where.all)
		maps.Copy(c.where.all, previous.where.more)
	}
	for i, n := range c.nodes {
		if same && n == previous.nodes[i] {
			continue
		}
		if same {
			for _, p := range previous.nodes[i].info.Pods {
				delete(c.where.all, podID(p.GetPod()))
			}
		}
	}
	for i, n := range c.nodes {
		if same && n == previous.nodes[i] {
			continue
		}
		for _, p := range n.info.Pods {
			c.where.all[podID(p.GetPod())] = n.obj.Name
		}
	}
	c.number()
	return c
}

// taken returns the node of the snapshot for a NodeInfo that has not changed since, or a new one.
func (c *Cluster) taken(info fwk.NodeInfo) *node {
	if c != nil {
		if i, ok := c.byName[info.Node().Name]; ok && c.nodes[i].info.Generation == info.GetGeneration() {
			return c.nodes[i]
		}
	}
	copied, _ := info.Snapshot().(*framework.NodeInfo)
	if copied == nil { // another implementation of the interface: build ours from its pods
		return newNode(info.Node(), info.GetPods())
	}
	return &node{obj: info.Node(), info: copied}
}

package placement

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
)

// copy returns a Cluster that shares all nodes with c.
func (c *Cluster) copy() *Cluster {
	return &Cluster{objects: c.objects, names: c.names, nodes: slices.Clone(c.nodes), byName: c.byName, podNodes: c.podNodes, store: c.store, atRest: c.atRest, lost: c.lost, anyDevices: c.anyDevices, anyStorage: c.anyStorage}
}

// withPods returns a copy in which some nodes have other pods, by position. The data that an index keeps of the others stays valid.
func (c *Cluster) withPods(changed map[int]*node) *Cluster {
	out := c.copy()
	differs := make(map[int]bool, len(c.whatIf)+len(c.differs)+len(changed))
	if c.indexed() {
		out.index, out.version, out.whatIf = c.index, c.version, differs
		maps.Copy(differs, c.whatIf)
	} else {
		out.origin, out.differs = cmp.Or(c.origin, c), differs
		maps.Copy(differs, c.differs)
	}
	for at, n := range changed {
		out.nodes[at], differs[at] = n, true
	}
	out.number()
	return out
}

// Derived returns the cluster that this one is but for the pods of some nodes, and the names of these. It is nil for any other, and where pods that matter
// to other nodes, too, are among those: they keep others off by anti-affinity.
func (c *Cluster) Derived() (from *Cluster, nodes []string) {
	if c.origin == nil {
		return nil, nil
	}
	nodes = make([]string, 0, len(c.differs))
	for at := range c.differs {
		if len(c.nodes[at].info.PodsWithRequiredAntiAffinity)+len(c.origin.nodes[at].info.PodsWithRequiredAntiAffinity) > 0 {
			return nil, nil
		}
		nodes = append(nodes, c.nodes[at].obj.Name)
	}
	return c.origin, nodes
}

// Without returns the cluster as if the pods were gone. UIDs that hold nothing are ignored. A pod without a UID is known
// by "namespace/name".
func (c *Cluster) Without(pods ...types.UID) *Cluster {
	gone := make(map[types.UID]bool, len(pods))
	touched := map[int]*node{}
	for _, uid := range pods {
		if i, ok := c.position(uid); ok {
			gone[uid], touched[i] = true, nil
		}
	}
	for i := range touched {
		touched[i] = c.nodes[i].keep(func(p *corev1.Pod) bool { return !gone[PodID(p)] })
	}
	return c.withPods(touched)
}

// Emptied returns the cluster without the pods that keep refuses, and without the volumes that no pod uses any more. With DaemonSetPod as keep it is the
// cluster at rest.
func (c *Cluster) Emptied(keep func(*corev1.Pod) bool) *Cluster {
	out := c.copy()
	out.atRest = true
	for i, n := range c.nodes {
		out.nodes[i] = n.keep(keep)
	}
	out.number()
	return out
}

// WithPodsOf returns the cluster with other pods on the nodes where some pods are or were: those that another cluster, of the same nodes, has there and keep accepts.
func (c *Cluster) WithPodsOf(other *Cluster, on []types.UID, keep func(*corev1.Pod) bool) *Cluster {
	positions := map[int]bool{}
	for _, uid := range on {
		if at, known := c.position(uid); known {
			positions[at] = true
		}
	}
	return c.withPodsAt(positions, func(at int) *node { return other.nodes[at].keep(keep) })
}

// Like returns what a change makes of a cluster, given that c is what it makes of the one that it is derived from: c with the pods of that cluster where it differs. Where
// within, too, differs from what it is derived from only pods stay that within has, unless it is nil.
func (c *Cluster) Like(cluster, from, within *Cluster) *Cluster {
	positions := map[int]bool{}
	if cluster != from {
		maps.Copy(positions, cluster.differs)
	}
	if within == nil {
		return c.withPodsAt(positions, func(at int) *node { return cluster.nodes[at] })
	}
	maps.Copy(positions, within.differs)
	return c.withPodsAt(positions, func(at int) *node { return cluster.nodes[at].keep(within.nodes[at].has) })
}

// withPodsAt returns the cluster, which is the origin of what is returned, with the pods of other nodes at some positions.
func (c *Cluster) withPodsAt(positions map[int]bool, of func(at int) *node) *Cluster {
	if len(positions) == 0 {
		return c
	}
	changed := make(map[int]*node, len(positions))
	for at := range positions {
		n := of(at)
		if obj := c.nodes[at].obj; obj != n.obj {
			n = n.as(obj)
		}
		changed[at] = n
	}
	out := c.withPods(changed)
	out.origin, out.differs = c, positions // whatever c is derived from itself
	return out
}

// Within returns the cluster emptied of the pods that another one has not.
func (c *Cluster) Within(other *Cluster) *Cluster {
	out := c.copy()
	out.atRest = true
	for i, n := range c.nodes {
		if at, there := other.byName[n.obj.Name]; !there || len(n.info.Pods) > 0 && n != other.nodes[at] {
			out.nodes[i] = n.keep(func(p *corev1.Pod) bool { return there && other.nodes[at].has(p) })
		}
	}
	out.number()
	return out
}

// With returns the cluster with more pods on it, each on the node of its spec.nodeName. Pods that hold nothing, that are
// there already, or whose node is unknown, are ignored.
func (c *Cluster) With(pods ...*corev1.Pod) *Cluster {
	var fresh []*corev1.Pod
	added := map[int][]fwk.PodInfo{}
	done := map[types.UID]bool{}
	for _, p := range pods {
		id := PodID(p)
		at, known := c.byName[p.Spec.NodeName]
		was, seen := c.position(id)
		if !known || !Holds(p) || done[id] || seen && c.nodes[was].holds(id) {
			continue
		}
		done[id] = true
		fresh = append(fresh, p)
		added[at] = append(added[at], podInfo(p))
	}
	fuller := make(map[int]*node, len(added))
	for at, more := range added {
		fuller[at] = c.nodes[at].withPods(slices.Concat(c.nodes[at].info.Pods, more))
	}
	out := c.withPods(fuller)
	out.podNodes = c.podNodes.with(fresh)
	return out
}

// WithNodes returns the cluster with the given nodes: one of a known name replaces the node and keeps its pods, the others
// are new and empty.
func (c *Cluster) WithNodes(nodes ...*corev1.Node) *Cluster {
	out := c.copy()
	fresh := map[string]*node{}
	for _, obj := range nodes {
		if at, known := c.byName[obj.Name]; known {
			out.nodes[at] = c.nodes[at].as(obj)
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
	out, gone := c.copy(), sets.New(names...)
	out.nodes = slices.DeleteFunc(out.nodes, func(n *node) bool { return gone.Has(n.obj.Name) })
	out.place()
	out.number()
	return out
}

// MapNodes returns the cluster with every node replaced by what f makes of it; f returns its argument for a node that
// stays as it is, and must not change the argument itself. See Uncordoned, Repaired and AtCapacity.
func (c *Cluster) MapNodes(f func(*corev1.Node) *corev1.Node) *Cluster {
	out := c.copy()
	for i, n := range c.nodes {
		if obj := f(n.obj); obj != n.obj {
			out.nodes[i] = n.as(obj)
		}
	}
	out.number()
	return out
}

// Ideal returns the cluster at its best: only the pods that keep accepts, every node uncordoned, Ready and with all devices
// of its capacity, and those of its drivers that are published, and storage for all volumes that are to be made. A gang without a placement there is too big for the cluster.
func (c *Cluster) Ideal(keep func(*corev1.Pod) bool) *Cluster {
	return c.Emptied(keep).DevicesRepaired().AnyStorage().MapNodes(func(n *corev1.Node) *corev1.Node { return AtCapacity(Repaired(Uncordoned(n))) })
}

// AsScheduled returns the cluster as kube-scheduler judges it, which looks at neither the Ready condition nor the deletion of
// a node, only at its taints. What is impossible there is impossible for it; c itself if no node makes a difference.
func (c *Cluster) AsScheduled() *Cluster {
	strict := func(n *node) bool { return n.obj.DeletionTimestamp != nil || !NodeReady(n.obj) }
	if !slices.ContainsFunc(c.nodes, strict) {
		return c
	}
	return c.MapNodes(func(n *corev1.Node) *corev1.Node {
		if n.DeletionTimestamp == nil && NodeReady(n) {
			return n
		}
		n = n.DeepCopy()
		n.DeletionTimestamp = nil
		n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		return n
	})
}

// Uncordoned returns the node without spec.unschedulable and its taint; n itself if it is not cordoned.
func Uncordoned(n *corev1.Node) *corev1.Node {
	cordoned := n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, cordonTaint)
	if !cordoned {
		return n
	}
	n = n.DeepCopy()
	n.Spec.Unschedulable = false
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, cordonTaint)
	return n
}

// Repaired returns the node with a Ready condition of True and without the taints that report a problem; n itself if it has none.
func Repaired(n *corev1.Node) *corev1.Node {
	if NodeReady(n) && !slices.ContainsFunc(n.Spec.Taints, ProblemTaint) {
		return n
	}
	n = n.DeepCopy()
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, ProblemTaint)
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			n.Status.Conditions[i].Status = corev1.ConditionTrue
		}
	}
	return n
}

// AtCapacity returns the node with every extended resource (devices) allocatable up to its capacity; n itself if it is.
// CPU, memory and storage keep what the system reserves.
func AtCapacity(n *corev1.Node) *corev1.Node {
	out := n
	for name, capacity := range n.Status.Capacity {
		if v1helper.IsExtendedResourceName(name) && capacity.Cmp(n.Status.Allocatable[name]) > 0 {
			if out == n {
				out = n.DeepCopy()
			}
			if out.Status.Allocatable == nil {
				out.Status.Allocatable = corev1.ResourceList{}
			}
			out.Status.Allocatable[name] = capacity
		}
	}
	return out
}

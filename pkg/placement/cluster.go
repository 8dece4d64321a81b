package placement

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Cluster is an immutable snapshot of nodes, the pods on them and what their placement depends on. It is safe for
// concurrent use.
type Cluster struct {
	objects *Objects // everything but nodes and pods, which are in nodes
	names   *names
	nodes   []*node // ordered by name
	byName  map[string]int
	where   where
	store   *store

	allocation allocation
}

// node is one node with its pods. It is never changed once it is in a Cluster, so copies of a Cluster share it.
type node struct {
	obj         *corev1.Node
	info        *framework.NodeInfo
	alloc, used vector
}

// NewCluster builds a snapshot.
func NewCluster(objects Objects) *Cluster {
	c := &Cluster{objects: &objects, names: newNames(), byName: map[string]int{}, where: where{all: make(map[types.UID]string, len(objects.Pods))}, store: &store{}}
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
	var infos []fwk.PodInfo
	for _, name := range slices.Sorted(maps.Keys(unique)) {
		on := pods[name]
		slices.SortFunc(on, comparePods)
		on = slices.CompactFunc(on, func(a, b *corev1.Pod) bool { return podID(a) == podID(b) })
		infos = infos[:0] // a node copies them
		for _, p := range on {
			infos = append(infos, parsed.of(p))
			c.where.all[podID(p)] = name
		}
		c.byName[name] = len(c.nodes)
		n := newNode(unique[name], infos)
		// Nodes whose amounts are one object, as in a snapshot of a large cluster, share what is made of it.
		shape := reflect.ValueOf(n.obj.Status.Allocatable).Pointer()
		if known := amounts[shape]; known != nil {
			n.info.Allocatable = known
		}
		amounts[shape] = n.info.Allocatable
		c.nodes = append(c.nodes, n)
	}
	c.number()
	return c
}

// number gives every resource of the nodes a position and fills the vectors of the nodes that have none yet.
func (c *Cluster) number() {
	known := map[*framework.Resource]vector{}
	for i, n := range c.nodes {
		if n.alloc != nil {
			continue
		}
		c.names = c.names.with(n.info.Allocatable, n.info.Requested)
		if known[n.info.Allocatable] == nil {
			known[n.info.Allocatable] = c.names.vector(n.info.Allocatable, n.info.Allocatable.AllowedPodNumber)
		}
		c.nodes[i].alloc = known[n.info.Allocatable]
		c.nodes[i].used = c.names.vector(n.info.Requested, len(n.info.Pods))
	}
}

func newNode(obj *corev1.Node, pods []fwk.PodInfo) *node {
	info := framework.NewNodeInfo()
	info.SetNode(obj)
	info.Pods = make([]fwk.PodInfo, 0, len(pods))
	for _, p := range pods {
		info.AddPodInfo(p)
	}
	return &node{obj: obj, info: info}
}

// holding is the same node with other pods: what depends on the node alone is not worked out again.
func (n *node) holding(pods []fwk.PodInfo) *node {
	info := *n.info
	info.Pods = make([]fwk.PodInfo, 0, len(pods))
	info.PodsWithAffinity, info.PodsWithRequiredAntiAffinity, info.PodsWithRequiredNonHostScopedAntiAffinity = nil, nil, nil
	info.Requested, info.NonZeroRequested = &framework.Resource{}, &framework.Resource{}
	info.UsedPorts, info.PVCRefCounts = fwk.HostPortInfo{}, map[string]int{}
	for _, p := range pods {
		info.AddPodInfo(p)
	}
	return &node{obj: n.obj, info: &info}
}

// podInfo parses a pod. Affinity terms that do not parse are left out, as in the scheduler.
func podInfo(p *corev1.Pod) *framework.PodInfo {
	info, _ := framework.NewPodInfo(p)
	return info
}

// Holds tells whether a pod uses resources of a node: it is bound and has neither succeeded nor failed.
func Holds(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// podID is the pod's UID, or its namespace and name where it has none.
func podID(p *corev1.Pod) types.UID {
	if p.UID != "" {
		return p.UID
	}
	return types.UID(p.Namespace + "/" + p.Name)
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// Nodes returns the nodes, ordered by name.
func (c *Cluster) Nodes() []*corev1.Node {
	out := make([]*corev1.Node, 0, len(c.nodes))
	for _, n := range c.nodes {
		out = append(out, n.obj)
	}
	return out
}

// Node returns a node by name, nil if there is none.
func (c *Cluster) Node(name string) *corev1.Node {
	if i, ok := c.byName[name]; ok {
		return c.nodes[i].obj
	}
	return nil
}

// PodsOn returns the pods that use resources of a node, ordered by namespace and name.
func (c *Cluster) PodsOn(name string) []*corev1.Pod {
	i, ok := c.byName[name]
	if !ok {
		return nil
	}
	out := make([]*corev1.Pod, 0, len(c.nodes[i].info.Pods))
	for _, p := range c.nodes[i].info.Pods {
		out = append(out, p.GetPod())
	}
	slices.SortFunc(out, comparePods)
	return out
}

package placement

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Objects are the API objects of a snapshot. Their order does not matter and they are never changed. A Cluster keeps
// pointers to them, so the caller must not change them either.
type Objects struct {
	// Nodes are all nodes; of two with the same name the last counts.
	Nodes []*corev1.Node
	// Pods are the pods of all namespaces. Those that are bound (spec.nodeName) and neither Succeeded nor Failed use
	// resources, also while they terminate; the others are ignored.
	Pods []*corev1.Pod
	// Namespaces are needed for pod affinity terms with a namespaceSelector.
	Namespaces []*corev1.Namespace

	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	CSIDrivers             []*storagev1.CSIDriver
	VolumeAttachments      []*storagev1.VolumeAttachment
	// StorageCapacities are what drivers publish of the storage of nodes; none where that is not read.
	StorageCapacities []*storagev1.CSIStorageCapacity

	ResourceClaims         []*resourceapi.ResourceClaim
	ResourceClaimTemplates []*resourceapi.ResourceClaimTemplate
	ResourceSlices         []*resourceapi.ResourceSlice
	DeviceClasses          []*resourceapi.DeviceClass
}

// Cluster is an immutable snapshot of nodes, the pods on them and what their placement depends on. It is safe for
// concurrent use.
type Cluster struct {
	objects  *Objects // everything but nodes and pods, which are in nodes
	names    *names
	nodes    []*node // ordered by name
	byName   map[string]int
	podNodes podNodes
	store    *store

	// index keeps what is known of the nodes, if there is one and its version is this; whatIf are the positions of nodes that a what-if
	// has changed since, which it knows nothing of.
	index        *Index
	version      uint64
	nodesVersion uint64
	whatIf       map[int]bool
	// atRest: volumes that no pod uses any more are detached.
	atRest bool
	// origin is the cluster of which a what-if has changed the pods of some nodes, and differs are the positions of these; nil of any other.
	origin  *Cluster
	differs map[int]bool

	// lost are claims whose devices are taken from them, see released.
	lost sets.Set[*resourceapi.ResourceClaim]
	// anyDevices: claims need no devices that go together, see AnyDevices.
	anyDevices bool
	// anyStorage: there is storage for all volumes that are to be made, see AnyStorage.
	anyStorage bool

	allocation allocation
	releases   releases
	list       nodeList
}

// nodeList is the nodes of a cluster, once they are needed.
type nodeList struct {
	once sync.Once
	all  []*corev1.Node
}

// State distinguishes clusters of one [Index]: it is equal while no node has changed, nor what is on it, and the other objects are the same.
type State struct {
	nodes uint64
	rest  *Objects
}

// State returns that of a cluster from an index.
func (c *Cluster) State() State { return State{c.nodesVersion, c.objects} }

// NewCluster builds a snapshot.
func NewCluster(objects Objects) *Cluster { return Known{}.Cluster(objects) }

// number gives every resource of the nodes a position and fills the vectors of the nodes that have none yet.
func (c *Cluster) number() {
	known := map[*framework.Resource]vector{}
	for i, n := range c.nodes {
		if n.alloc != nil {
			continue
		}
		c.names = c.names.with(n.info.Allocatable)
		if known[n.info.Allocatable] == nil {
			known[n.info.Allocatable] = c.names.vector(n.info.Allocatable, n.info.Allocatable.AllowedPodNumber)
		}
		c.nodes[i].alloc = known[n.info.Allocatable]
		c.nodes[i].used = c.names.vector(n.info.Requested, len(n.info.Pods))
	}
}

// place gives the nodes their positions, by name.
func (c *Cluster) place() {
	slices.SortFunc(c.nodes, func(a, b *node) int { return cmp.Compare(a.obj.Name, b.obj.Name) })
	c.byName = make(map[string]int, len(c.nodes))
	for i, n := range c.nodes {
		c.byName[n.obj.Name] = i
	}
}

// Nodes returns the nodes, ordered by name. The list must not be changed.
func (c *Cluster) Nodes() []*corev1.Node {
	if c.origin != nil { // which has the same
		return c.origin.Nodes()
	}
	c.list.once.Do(func() {
		all := make([]*corev1.Node, 0, len(c.nodes))
		for _, n := range c.nodes {
			all = append(all, n.obj)
		}
		c.list.all = slices.Clip(all)
	})
	return c.list.all
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

// Pods goes through the pods on nodes with the names of these, in no order but that of the nodes.
func (c *Cluster) Pods() iter.Seq2[string, *corev1.Pod] {
	return c.podsAt(upTo(len(c.nodes)))
}

// upTo goes through the positions of a list.
func upTo(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// podsAt is Pods of the nodes at some positions.
func (c *Cluster) podsAt(positions iter.Seq[int]) iter.Seq2[string, *corev1.Pod] {
	return func(yield func(string, *corev1.Pod) bool) {
		for at := range positions {
			n := c.nodes[at]
			for _, info := range n.info.Pods {
				if !yield(n.obj.Name, info.GetPod()) {
					return
				}
			}
		}
	}
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
			out[name] = request.Quantity(name, alloc-used)
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
			out[name] = request.Quantity(name, alloc)
		}
	}
	return out
}

// anyAntiAffine reports whether some node has pods with required anti-affinity.
func (c *Cluster) anyAntiAffine() bool {
	if c.indexed() && len(c.index.antiAffinity.terms) > 0 {
		return true
	}
	for n := range c.unindexed() {
		if len(n.info.PodsWithRequiredAntiAffinity) > 0 {
			return true
		}
	}
	return false
}

// unindexed goes through the nodes of which no index knows what it knows of the others: those that a what-if changed, or all without an index.
func (c *Cluster) unindexed() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if !c.indexed() {
			slices.Values(c.nodes)(yield)
			return
		}
		for at := range c.whatIf {
			if !yield(c.nodes[at]) {
				return
			}
		}
	}
}

// Unused is how much of a resource is left on all nodes together, whether or not any pod may use them, in the unit of Quantity.
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

// podNodes maps each bound pod to its node, by name: positions change when nodes come and go, names do not, so that what-if copies of a
// Cluster share it. Pods that a what-if took away, alone or with their node, stay known.
type podNodes struct {
	all map[types.UID]string
	// more are the pods that what-ifs added, or put elsewhere; few.
	more map[types.UID]string
}

// of returns the name of the node that a pod is or was on.
func (w podNodes) of(uid types.UID) (node string, known bool) {
	if node, known = w.more[uid]; known {
		return node, true
	}
	node, known = w.all[uid]
	return node, known
}

// with returns a copy with the pods on the nodes of their spec.
func (w podNodes) with(pods []*corev1.Pod) podNodes {
	more := make(map[types.UID]string, len(w.more)+len(pods))
	maps.Copy(more, w.more)
	for _, p := range pods {
		more[PodID(p)] = p.Spec.NodeName
	}
	return podNodes{all: w.all, more: more}
}

// position returns the position of the node that a pod is or was on; ok is false for a pod that is not known, or whose node a
// what-if took away.
func (c *Cluster) position(uid types.UID) (at int, ok bool) {
	node, known := c.podNodes.of(uid)
	if !known {
		return 0, false
	}
	at, ok = c.byName[node]
	return at, ok
}

// boundPod returns a pod that is on a node.
func (c *Cluster) boundPod(uid types.UID) (pod *corev1.Pod, ok bool) {
	at, ok := c.position(uid)
	if !ok {
		return nil, false
	}
	for _, p := range c.nodes[at].info.Pods {
		if PodID(p.GetPod()) == uid {
			return p.GetPod(), true
		}
	}
	return nil, false
}

// gone reports whether a pod was bound and is not any more.
func (c *Cluster) gone(uid types.UID) bool {
	if _, known := c.podNodes.of(uid); !known {
		return false
	}
	at, ok := c.position(uid)
	return !ok || !c.nodes[at].holds(uid)
}

// namespaceLabels returns the labels of a namespace, nil if it is not known.
func (c *Cluster) namespaceLabels(name string) labels.Set {
	return c.store.namespaceLabels(c.objects)[name]
}

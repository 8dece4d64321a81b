package placement

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Index is the cluster of a running scheduler. It keeps data of all nodes from one plan to the next, so a plan costs what changed since the
// previous one and what the gang takes, not the size of the cluster. Place returns the same on its clusters as on any other.
//
// One goroutine uses an Index and its clusters.
type Index struct {
	cluster *Cluster
	list    []fwk.NodeInfo // the scheduler's own list
	infos   []fwk.NodeInfo // what was in it
	known   []int64        // by position in infos: the generation that the cluster has
	at      []int          // by position in infos: the node's position in the cluster
	listed  []int          // by position in the cluster: the node's position in infos
	// version counts the updates that changed something: a cluster of another version knows nothing of what is kept.
	version uint64
	// nodesVersion counts those that changed a node, or its pods.
	nodesVersion uint64
	// pods counts the pods on nodes.
	pods podCounts
	// antiAffinity are the required anti-affinity terms of those pods.
	antiAffinity *AntiAffinity

	// changed are the positions of the nodes that changed, in the order in which they did. Each shape knows how many of them it has seen.
	changed    []int
	shapes     map[string]*shape
	topologies map[string]*topology
	labelled   []*labelledPods

	// stores are those of the objects that were passed lately, the newest first: gangs that refer to volumes and gangs that do not take turns.
	stores []storeOf
}

// storeOf is what was prepared from some objects.
type storeOf struct {
	objects *Objects
	store   *store
}

// maxStores is how many are kept, one for each kind of gang that may take turns: without volumes, with some, with claims of devices. Those of volumes that have
// changed since are large.
const maxStores = 3

// storeOf returns the store of some objects.
func (x *Index) storeOf(o *Objects) *store {
	for i, known := range x.stores {
		if known.objects == o {
			copy(x.stores[1:i+1], x.stores[:i])
			x.stores[0] = known
			return known.store
		}
	}
	x.stores = slices.Insert(x.stores, 0, storeOf{o, &store{}})
	x.stores = slices.Delete(x.stores, min(len(x.stores), maxStores), len(x.stores))
	return x.stores[0].store
}

// NewIndex returns the index of a cluster without nodes.
func NewIndex() *Index {
	x := &Index{}
	x.rebuild(nil, &Objects{})
	return x
}

// Update follows the scheduler's snapshot, with the pods that it has assumed, and returns it as a Cluster. The Cluster and the what-if
// copies that are made of it hold until the next Update. rest is what the volumes and claims of pods refer to (its Nodes and Pods are not
// looked at); passing the same pointer again keeps what was prepared from it.
//
// The NodeInfos are copied: the scheduler may go on changing its own.
func (x *Index) Update(nodes []fwk.NodeInfo, rest *Objects) *Cluster {
	return x.update(nodes, upTo(len(nodes)), rest)
}

// UpdateNodes is Update at the cost of the named nodes: none but those have changed since the last update, as long as the scheduler's list of
// nodes is the same.
func (x *Index) UpdateNodes(nodes []fwk.NodeInfo, changed []string, rest *Objects) *Cluster {
	if len(nodes) != len(x.list) || len(nodes) == 0 || &nodes[0] != &x.list[0] {
		return x.Update(nodes, rest)
	}
	return x.update(nodes, func(yield func(int) bool) {
		for _, name := range changed {
			if at, known := x.cluster.byName[name]; known && !yield(x.listed[at]) {
				return
			}
		}
	}, rest)
}

// update looks at some positions of the scheduler's list for nodes that have changed.
func (x *Index) update(nodes []fwk.NodeInfo, suspects iter.Seq[int], rest *Objects) *Cluster {
	x.list = nodes
	if len(nodes) != len(x.infos) {
		x.rebuild(nodes, rest)
		return x.cluster
	}
	var changed []int
	for i := range suspects {
		info := nodes[i]
		if info == x.infos[i] && generation(info) == x.known[i] {
			continue
		}
		if info != x.infos[i] && info.Node().Name != x.cluster.nodes[x.at[i]].obj.Name {
			x.rebuild(nodes, rest)
			return x.cluster
		}
		changed = append(changed, i)
	}
	if len(changed) == 0 && rest == x.cluster.objects {
		return x.cluster
	}
	if len(changed) > 0 {
		x.nodesVersion++
	}
	x.next(rest)
	for _, i := range changed {
		x.infos[i], x.known[i] = nodes[i], generation(nodes[i])
		x.replace(x.at[i], nodes[i])
	}
	x.trim()
	return x.cluster
}

// Objects are those that were passed last.
func (x *Index) Objects() *Objects { return x.cluster.objects }

// AntiAffinity are the terms of the pods on nodes as of the last update, until the next.
func (x *Index) AntiAffinity() *AntiAffinity { return x.antiAffinity }

// generation is that of a NodeInfo: it grows with every change.
func generation(info fwk.NodeInfo) int64 {
	if known, ok := info.(*framework.NodeInfo); ok {
		return known.Generation
	}
	return info.GetGeneration()
}

// next makes the cluster of a new version, which is the one before until its nodes are replaced.
func (x *Index) next(rest *Objects) {
	before := x.cluster
	x.version++
	x.cluster = &Cluster{
		objects: rest, names: before.names, nodes: before.nodes, byName: before.byName, podNodes: before.podNodes, store: x.storeOf(rest),
		index: x, version: x.version, nodesVersion: x.nodesVersion,
	}
}

// replace puts what became of a node in its place.
func (x *Index) replace(at int, info fwk.NodeInfo) {
	c, old := x.cluster, x.cluster.nodes[at]
	n := fromNodeInfo(info)
	names := c.names.with(n.info.Allocatable)
	if names != c.names {
		c.names, x.shapes = names, map[string]*shape{}
	}
	if n.obj == old.obj {
		n.alloc = old.alloc
	} else {
		n.alloc = names.vector(n.info.Allocatable, n.info.Allocatable.AllowedPodNumber)
		x.relabel(old.obj, n.obj)
	}
	n.used = names.vector(n.info.Requested, len(n.info.Pods))
	c.nodes[at] = n
	x.pods.count(at, old, -1)
	x.pods.count(at, n, 1)
	for _, p := range old.info.Pods {
		if id := PodID(p.GetPod()); c.podNodes.all[id] == old.obj.Name {
			delete(c.podNodes.all, id)
		}
	}
	for _, p := range n.info.Pods {
		c.podNodes.all[PodID(p.GetPod())] = n.obj.Name
	}
	for _, l := range x.labelled {
		l.remove(old)
		l.add(n, at)
	}
	x.antiAffinity.replace(old.info.PodsWithRequiredAntiAffinity, n.info.PodsWithRequiredAntiAffinity)
	x.changed = append(x.changed, at)
}

// relabel forgets the domains of labels that a node has no longer, or has now.
func (x *Index) relabel(before, now *corev1.Node) {
	for name, t := range x.topologies {
		if slices.ContainsFunc(t.keys, func(key string) bool {
			was, had := before.Labels[key]
			is, has := now.Labels[key]
			return was != is || had != has
		}) {
			delete(x.topologies, name)
		}
	}
}

// rebuild starts again from the scheduler's snapshot, because nodes came or went. Unchanged nodes are reused.
func (x *Index) rebuild(nodes []fwk.NodeInfo, rest *Objects) {
	before := x.cluster
	x.version++
	x.nodesVersion++
	c := &Cluster{
		objects: rest, names: newNames(), byName: make(map[string]int, len(nodes)), podNodes: podNodes{all: map[types.UID]string{}}, store: x.storeOf(rest),
		index: x, version: x.version, nodesVersion: x.nodesVersion,
	}
	if before != nil {
		c.names = before.names
	}
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(nodes[a].Node().Name, nodes[b].Node().Name) })
	*x = Index{
		cluster: c, list: nodes, infos: slices.Clone(nodes), known: make([]int64, len(nodes)), at: make([]int, len(nodes)), listed: order, version: x.version, nodesVersion: x.nodesVersion,
		pods: newPodCounts(), antiAffinity: newAntiAffinity(), shapes: map[string]*shape{}, topologies: map[string]*topology{},
		stores: x.stores,
	}
	for at, i := range order {
		n := before.reuse(nodes[i])
		x.known[i], x.at[i], c.byName[n.obj.Name] = generation(nodes[i]), at, at
		c.nodes = append(c.nodes, n)
		x.antiAffinity.replace(nil, n.info.PodsWithRequiredAntiAffinity)
		x.pods.count(at, n, 1)
		for _, p := range n.info.Pods {
			c.podNodes.all[PodID(p.GetPod())] = n.obj.Name
		}
	}
	c.number()
}

// reuse returns the node of the snapshot for a NodeInfo that has not changed since, or a new one.
func (c *Cluster) reuse(info fwk.NodeInfo) *node {
	if c != nil {
		if i, ok := c.byName[info.Node().Name]; ok && c.nodes[i].info.Generation == generation(info) {
			return c.nodes[i]
		}
	}
	return fromNodeInfo(info)
}

// fromNodeInfo copies a node of a running scheduler.
func fromNodeInfo(info fwk.NodeInfo) *node {
	copied, _ := info.Snapshot().(*framework.NodeInfo)
	if copied == nil { // another implementation of the interface: build ours from its pods
		return newNode(info.Node(), info.GetPods())
	}
	return &node{obj: info.Node(), info: copied}
}

// indexed reports whether an Index keeps what is known of the cluster's nodes; those that a what-if changed are in c.whatIf.
func (c *Cluster) indexed() bool { return c.index != nil && c.version == c.index.version }

// topology returns the domains of some labels.
func (x *Index) topology(keys []string) *topology {
	name := strings.Join(keys, between)
	t, known := x.topologies[name]
	if !known {
		if len(x.topologies) >= maxKept {
			clear(x.topologies) // users choose the keys
		}
		t = newTopology(x.cluster.nodes, keys)
		x.topologies[name] = t
	}
	return t
}

// maxKept is how many shapes, and how many labels, are kept. Users' pods determine how many there are.
const maxKept = 64

// trim drops changes that every shape has seen, and shapes that are so old that an update would go through most of the nodes anyway.
func (x *Index) trim() {
	if len(x.changed) < 2*len(x.cluster.nodes)+1024 {
		return
	}
	for key, s := range x.shapes {
		if s.seen < len(x.changed)/2 {
			delete(x.shapes, key)
		}
	}
	cut := len(x.changed) / 2
	x.changed = slices.Delete(x.changed, 0, cut)
	for _, s := range x.shapes {
		s.seen -= cut
	}
}

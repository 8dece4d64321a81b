package engine

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// maxChanged is how many names of changed nodes are kept: pods name nodes, and users write them.
const maxChanged = 4096

// ChangedNodes are the nodes that have changed in the engine's snapshot. Whoever keeps data of all nodes looks at those only, and not at the
// generation of each. They are known of a cache that is watched.
type ChangedNodes struct {
	mu          sync.Mutex // held during every change of the cache, and during a snapshot
	now         nodeNames  // changed in the cache since its last snapshot
	snapshotted nodeNames  // changed in the snapshot since they were taken
}

// NewChangedNodes returns the changed nodes of a cache that is watched later; until they are taken, any may have changed.
func NewChangedNodes() *ChangedNodes { return &ChangedNodes{snapshotted: nodeNames{all: true}} }

// Take returns the names of the nodes of the snapshot that may have changed since the last call; known is false if any may have.
func (c *ChangedNodes) Take() (names []string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.snapshotted
	c.snapshotted = nodeNames{}
	return slices.Sorted(maps.Keys(taken.names)), !taken.all
}

// Suspect has the next Take report that any node may have changed.
func (c *ChangedNodes) Suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshotted = nodeNames{all: true}
}

// Watch returns the engine's cache, with its changes recorded.
func (c *ChangedNodes) Watch(cache internalcache.Cache) internalcache.Cache {
	return &watchedCache{Cache: cache, nodes: c}
}

// nodeNames is a bounded set of names of nodes.
type nodeNames struct {
	names map[string]struct{}
	all   bool // there were too many
}

func (n *nodeNames) add(names ...string) {
	for _, name := range names {
		switch {
		case n.all || name == "":
		case len(n.names) >= maxChanged:
			*n = nodeNames{all: true}
		default:
			if n.names == nil {
				n.names = map[string]struct{}{}
			}
			n.names[name] = struct{}{}
		}
	}
}

func (n *nodeNames) addAll(more nodeNames) {
	for name := range more.names {
		n.add(name)
	}
	if more.all {
		*n = nodeNames{all: true}
	}
}

// watchedCache is the engine's cache; each method that changes nodes records which.
type watchedCache struct {
	internalcache.Cache
	nodes *ChangedNodes
}

// pods makes a change of pods, and records their nodes: those that are given, and those on which the cache has the pods.
func (w *watchedCache) pods(change func() error, pods ...*corev1.Pod) error {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	for _, pod := range pods {
		w.nodes.now.add(pod.Spec.NodeName)
		if cached, err := w.GetPod(pod); err == nil { // an assumed pod may be added on another node
			w.nodes.now.add(cached.Spec.NodeName)
		}
	}
	return change()
}

// AssumePod implements internalcache.Cache.
func (w *watchedCache) AssumePod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pods(func() error { return w.Cache.AssumePod(logger, pod) }, pod)
}

// ForgetPod implements internalcache.Cache.
func (w *watchedCache) ForgetPod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pods(func() error { return w.Cache.ForgetPod(logger, pod) }, pod)
}

// RemoveAssumedPod implements internalcache.Cache.
func (w *watchedCache) RemoveAssumedPod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pods(func() error { return w.Cache.RemoveAssumedPod(logger, pod) }, pod)
}

// AddPod implements internalcache.Cache.
func (w *watchedCache) AddPod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pods(func() error { return w.Cache.AddPod(logger, pod) }, pod)
}

// UpdatePod implements internalcache.Cache.
func (w *watchedCache) UpdatePod(logger klog.Logger, before, after *corev1.Pod) error {
	return w.pods(func() error { return w.Cache.UpdatePod(logger, before, after) }, before, after)
}

// RemovePod implements internalcache.Cache.
func (w *watchedCache) RemovePod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pods(func() error { return w.Cache.RemovePod(logger, pod) }, pod)
}

// AddNode implements internalcache.Cache.
func (w *watchedCache) AddNode(logger klog.Logger, node *corev1.Node) {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.now.add(node.Name)
	w.Cache.AddNode(logger, node)
}

// UpdateNode implements internalcache.Cache.
func (w *watchedCache) UpdateNode(logger klog.Logger, before, after *corev1.Node) {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.now.add(after.Name)
	w.Cache.UpdateNode(logger, before, after)
}

// RemoveNode implements internalcache.Cache.
func (w *watchedCache) RemoveNode(logger klog.Logger, node *corev1.Node) error {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.now.add(node.Name)
	return w.Cache.RemoveNode(logger, node)
}

// UpdateSnapshot implements internalcache.Cache.
func (w *watchedCache) UpdateSnapshot(logger klog.Logger, snapshot *internalcache.Snapshot) error {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.snapshotted.addAll(w.nodes.now)
	w.nodes.now = nodeNames{}
	return w.Cache.UpdateSnapshot(logger, snapshot)
}

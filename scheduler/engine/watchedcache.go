package engine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// watchedCache is the engine's cache; each method that changes nodes records which.
type watchedCache struct {
	internalcache.Cache
	nodes    *ChangedNodes
	contents *NodeContents
	assumed  *AssumedPods
	removed  func(klog.Logger, *corev1.Node)
}

// WatchCache returns the engine's cache, with its changes recorded. Removed is called with each node that the cache does not have any more, and may use the
// cache.
func WatchCache(cache internalcache.Cache, nodes *ChangedNodes, contents *NodeContents, assumed *AssumedPods, removed func(klog.Logger, *corev1.Node)) internalcache.Cache {
	return &watchedCache{Cache: cache, nodes: nodes, contents: contents, assumed: assumed, removed: removed}
}

// pod makes a change of a pod, and records its nodes: the one that is given, and those on which the cache has it before and after.
func (w *watchedCache) pod(pod *corev1.Pod, change func() error) error {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	was, is := w.cached(pod), (*corev1.Pod)(nil)
	err := change()
	is = w.cached(pod)
	assumed, _ := w.IsAssumedPod(pod) // the error is that of GetPod
	w.contents.podMoved(was, is, assumed)
	w.assumed.set(pod.UID, assumed)
	for _, at := range []*corev1.Pod{pod, was, is} { // an assumed pod may be added on another node
		if at != nil {
			w.nodes.now.add(at.Spec.NodeName)
		}
	}
	return err
}

// cached is a pod as the cache has it; nil where it has not.
func (w *watchedCache) cached(pod *corev1.Pod) *corev1.Pod {
	if cached, err := w.GetPod(pod); err == nil {
		return cached
	}
	return nil
}

// AssumePod implements internalcache.Cache.
func (w *watchedCache) AssumePod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pod(pod, func() error { return w.Cache.AssumePod(logger, pod) })
}

// ForgetPod implements internalcache.Cache.
func (w *watchedCache) ForgetPod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pod(pod, func() error { return w.Cache.ForgetPod(logger, pod) })
}

// RemoveAssumedPod implements internalcache.Cache.
func (w *watchedCache) RemoveAssumedPod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pod(pod, func() error { return w.Cache.RemoveAssumedPod(logger, pod) })
}

// AddPod implements internalcache.Cache.
func (w *watchedCache) AddPod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pod(pod, func() error { return w.Cache.AddPod(logger, pod) })
}

// UpdatePod implements internalcache.Cache.
func (w *watchedCache) UpdatePod(logger klog.Logger, before, after *corev1.Pod) error {
	return w.pod(after, func() error { return w.Cache.UpdatePod(logger, before, after) })
}

// RemovePod implements internalcache.Cache.
func (w *watchedCache) RemovePod(logger klog.Logger, pod *corev1.Pod) error {
	return w.pod(pod, func() error { return w.Cache.RemovePod(logger, pod) })
}

// AddNode implements internalcache.Cache.
func (w *watchedCache) AddNode(logger klog.Logger, node *corev1.Node) {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.now.add(node.Name)
	w.Cache.AddNode(logger, node)
	w.contents.nodeChanged(node)
}

// UpdateNode implements internalcache.Cache.
func (w *watchedCache) UpdateNode(logger klog.Logger, before, after *corev1.Node) {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.now.add(after.Name)
	w.Cache.UpdateNode(logger, before, after)
	w.contents.nodeChanged(after)
}

// RemoveNode implements internalcache.Cache.
func (w *watchedCache) RemoveNode(logger klog.Logger, node *corev1.Node) error {
	err := w.removeNode(logger, node)
	w.removed(logger, node)
	return err
}

func (w *watchedCache) removeNode(logger klog.Logger, node *corev1.Node) error {
	w.nodes.mu.Lock()
	defer w.nodes.mu.Unlock()
	w.nodes.now.add(node.Name)
	w.contents.nodeGone(node.Name)
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

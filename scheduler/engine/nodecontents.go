package engine

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// maxLeft is how many pods that have left a node are kept. A node that more have left counts as new: no event follows on what is taken back
// within an attempt.
const maxLeft = 32

// NodeContents are the pods that the engine's cache has on each node, those included that are assumed to be there, and what of a node may have
// come free. Unlike a snapshot they are as of now, and anybody may read them. They are known of a cache that is watched.
type NodeContents struct {
	mu    sync.Mutex
	nodes map[string]*nodeContent
}

// nodeContent is one node.
type nodeContent struct {
	node *corev1.Node // nil until it comes: its pods may be seen first
	pods []*corev1.Pod
	// assumed are those of the pods that are not bound yet, or not known to be.
	assumed sets.Set[types.UID]
	// What has changed since it was taken: whether it is new, the node as it was, and the pods that have left it, as they were.
	isNew bool
	was   *corev1.Node
	left  []*corev1.Pod
}

// NodeState is a node with the pods on it.
type NodeState struct {
	Node *corev1.Node // nil for none
	Pods []*corev1.Pod
	// Assumed are further pods, which the engine may still take away again without an event.
	Assumed []*corev1.Pod
}

// NewNodeContents returns the contents of a cache that is watched later.
func NewNodeContents() *NodeContents { return &NodeContents{nodes: map[string]*nodeContent{}} }

// Take returns a node as it is, and as it would be without what has made room on it since the last call: pods are back that have left, and the
// node's own changes are undone. Pods that have come count in both. ok is false where there is no node of that name.
func (c *NodeContents) Take(name string) (before, now NodeState, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil {
		return NodeState{}, NodeState{}, false
	}
	was, left, isNew := n.was, n.left, n.isNew
	n.was, n.left, n.isNew = nil, nil, false
	if n.node == nil {
		return NodeState{}, NodeState{}, false
	}
	now = NodeState{Node: n.node}
	for _, pod := range n.pods {
		if n.assumed.Has(pod.UID) {
			now.Assumed = append(now.Assumed, pod)
		} else {
			now.Pods = append(now.Pods, pod)
		}
	}
	if isNew {
		return NodeState{}, now, true
	}
	before = NodeState{Node: n.node, Pods: slices.Concat(now.Pods, left), Assumed: now.Assumed}
	if was != nil {
		before.Node = was
	}
	return before, now, true
}

// podMoved records where the cache has a pod, after a change: was and is are the pod as it was there and as it is, nil where it was or is not, and
// whether it is assumed to be there.
func (c *NodeContents) podMoved(was, is *corev1.Pod, assumed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was != nil {
		n := c.of(was.Spec.NodeName)
		n.pods = slices.DeleteFunc(n.pods, sameUID(was.UID))
		n.assumed.Delete(was.UID)
		if is == nil || is.Spec.NodeName != was.Spec.NodeName {
			n.leave(was)
		}
		c.drop(was.Spec.NodeName)
	}
	if is != nil {
		n := c.of(is.Spec.NodeName)
		n.pods = append(n.pods, is)
		n.left = slices.DeleteFunc(n.left, sameUID(is.UID))
		if assumed {
			n.assumed.Insert(is.UID)
		}
	}
}

// nodeChanged records a node, after it came or changed.
func (c *NodeContents) nodeChanged(node *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of(node.Name)
	switch {
	case n.node == nil:
		n.isNew = true
	case n.was == nil && len(framework.NodeSchedulingPropertiesChange(node, n.node)) > 0: // what else changes brings no event
		n.was = n.node
	}
	n.node = node
}

// nodeGone records that a node is gone. Its pods leave one after the other.
func (c *NodeContents) nodeGone(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of(name)
	n.node, n.was, n.isNew = nil, nil, false
	c.drop(name)
}

// leave records that a pod has left.
func (n *nodeContent) leave(pod *corev1.Pod) {
	if len(n.left) == maxLeft {
		n.left, n.isNew = nil, true
	}
	if !n.isNew {
		n.left = append(n.left, pod)
	}
}

func (c *NodeContents) of(name string) *nodeContent {
	n := c.nodes[name]
	if n == nil {
		n = &nodeContent{assumed: sets.Set[types.UID]{}}
		c.nodes[name] = n
	}
	return n
}

// drop forgets a node that is not there, once it has no pods: users name nodes in pods.
func (c *NodeContents) drop(name string) {
	if n := c.nodes[name]; n != nil && n.node == nil && len(n.pods) == 0 {
		delete(c.nodes, name)
	}
}

func sameUID(uid types.UID) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.UID == uid }
}

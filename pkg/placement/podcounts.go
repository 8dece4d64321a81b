package placement

import (
	"maps"

	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// podCounts counts the pods on nodes.
type podCounts struct {
	priorities map[int32]int // by priority
	leaving    int           // being deleted
}

// count adds the pods of a node; with sign -1 it takes them out.
func (o *podCounts) count(n *node, sign int) {
	for _, info := range n.info.Pods {
		pod := info.GetPod()
		priority := corev1helpers.PodPriority(pod)
		if o.priorities[priority] += sign; o.priorities[priority] == 0 {
			delete(o.priorities, priority)
		}
		if pod.DeletionTimestamp != nil {
			o.leaving += sign
		}
	}
}

// Settled reports whether every pod that has a node is of a priority, or of a higher one, and none is being deleted: nobody makes room for a pod of
// that priority. An index knows that without a look at the pods.
func (c *Cluster) Settled(priority int32) bool {
	counted := podCounts{priorities: map[int32]int{}}
	if c.indexed() {
		counted.leaving = c.index.pods.leaving
		maps.Copy(counted.priorities, c.index.pods.priorities)
		for at := range c.whatIf { // pods that a what-if took away are counted, too: then somebody looks for them in vain
			counted.count(c.nodes[at], 1)
		}
	} else {
		for _, n := range c.nodes {
			counted.count(n, 1)
		}
	}
	for of := range counted.priorities {
		if of < priority {
			return false
		}
	}
	return counted.leaving == 0
}

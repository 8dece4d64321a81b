package placement

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// podCounts counts the pods of nodes, by the positions of these.
type podCounts struct {
	priorities map[int32]map[int]int // by priority
	leaving    map[int]int           // being deleted
}

func newPodCounts() podCounts {
	return podCounts{priorities: map[int32]map[int]int{}, leaving: map[int]int{}}
}

// count adds the pods of a node; with sign -1 it takes them out.
func (o *podCounts) count(at int, n *node, sign int) {
	for _, info := range n.info.Pods {
		pod := info.GetPod()
		priority := corev1helpers.PodPriority(pod)
		on := o.priorities[priority]
		if on == nil {
			on = map[int]int{}
			o.priorities[priority] = on
		}
		if on[at] += sign; on[at] == 0 {
			delete(on, at)
		}
		if len(on) == 0 {
			delete(o.priorities, priority)
		}
		if pod.DeletionTimestamp == nil {
			continue
		}
		if o.leaving[at] += sign; o.leaving[at] == 0 {
			delete(o.leaving, at)
		}
	}
}

// below adds the positions of nodes that have a pod of a lower priority, or one that is being deleted.
func (o *podCounts) below(priority int32, to map[int]bool) {
	for at := range o.leaving {
		to[at] = true
	}
	for of, on := range o.priorities {
		if of >= priority {
			continue
		}
		for at := range on {
			to[at] = true
		}
	}
}

// unsettled are the positions of the nodes that have a pod of a lower priority, or one that is being deleted, and perhaps of some from which a what-if
// took such pods away. An index knows them without a look at the pods.
func (c *Cluster) unsettled(priority int32) map[int]bool {
	found, counted := map[int]bool{}, newPodCounts()
	if c.indexed() {
		c.index.pods.below(priority, found)
		for at := range c.whatIf {
			counted.count(at, c.nodes[at], 1)
		}
	} else {
		for at, n := range c.nodes {
			counted.count(at, n, 1)
		}
	}
	counted.below(priority, found)
	return found
}

// PodsBeside goes through the pods of the nodes that have one of a lower priority, or one that is being deleted: no other node has a pod that makes
// room for a pod of that priority. It adds those of some others by name. The order is that of the nodes.
func (c *Cluster) PodsBeside(priority int32, others ...string) iter.Seq2[string, *corev1.Pod] {
	at := c.unsettled(priority)
	for _, name := range others {
		if i, known := c.byName[name]; known {
			at[i] = true
		}
	}
	return c.podsAt(slices.Values(slices.Sorted(maps.Keys(at))))
}

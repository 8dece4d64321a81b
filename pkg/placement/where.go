package placement

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// where tells the node of each bound pod, by name: positions change when nodes come and go, names do not, so that what-if
// copies of a Cluster share it. Pods that a what-if took away, alone or with their node, stay known.
type where struct {
	all map[types.UID]string
	// more are the pods that what-ifs added, or put elsewhere; few.
	more map[types.UID]string
}

// of returns the name of the node that a pod is or was on.
func (w where) of(uid types.UID) (node string, known bool) {
	if node, known = w.more[uid]; known {
		return node, true
	}
	node, known = w.all[uid]
	return node, known
}

// with returns a copy with the pods on the nodes of their spec.
func (w where) with(pods []*corev1.Pod) where {
	more := make(map[types.UID]string, len(w.more)+len(pods))
	maps.Copy(more, w.more)
	for _, p := range pods {
		more[podID(p)] = p.Spec.NodeName
	}
	return where{all: w.all, more: more}
}

// find returns the position of the node that a pod is or was on; ok is false for a pod that is not known, or whose node a
// what-if took away.
func (c *Cluster) find(uid types.UID) (at int, ok bool) {
	node, known := c.where.of(uid)
	if !known {
		return 0, false
	}
	at, ok = c.byName[node]
	return at, ok
}

// gone tells whether a pod was bound and is not any more.
func (c *Cluster) gone(uid types.UID) bool {
	if _, known := c.where.of(uid); !known {
		return false
	}
	at, ok := c.find(uid)
	return !ok || !c.nodes[at].holds(uid)
}

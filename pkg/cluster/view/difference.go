package view

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/placement"
)

// changed applies the difference between two snapshots to the cluster of the first: cheaper than to build another one. It is the same cluster where no node differs, nor a pod that uses one.
func changed(c *placement.Cluster, before, after *snapshot.Snapshot, pods podChanges) *placement.Cluster {
	goneNodes, newNodes := difference(before.Nodes, after.Nodes)
	gonePods, newPods := using(pods.gone), using(pods.more)
	if len(gonePods) > 0 {
		c = c.Without(placement.PodIDs(gonePods)...)
	}
	replaced := map[string]bool{}
	for _, n := range newNodes {
		replaced[n.Name] = true
	}
	var lost []string
	for _, n := range goneNodes {
		if !replaced[n.Name] {
			lost = append(lost, n.Name)
		}
	}
	if len(lost) > 0 {
		c = c.WithoutNodes(lost...)
	}
	if len(newNodes) > 0 {
		c = c.WithNodes(newNodes...)
	}
	if len(newPods) > 0 {
		c = c.With(newPods...)
	}
	return c
}

// using are those of some pods that use nodes.
func using(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !placement.Holds(p) })
}

// named is a type of object that lists are sorted by.
type named[T any] interface {
	*T
	GetNamespace() string
	GetName() string
}

// difference are the objects of a that are not in b, and those of b that are not in a. It takes one walk over both, because
// b is mostly a without some objects, with some replaced, and with some more at its end; any other order is right, but slow.
func difference[T corev1.Pod | corev1.Node | batchv1.Job | unstructured.Unstructured, P named[T]](a, b []P) (gone, more []P) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if a[i] == b[j] {
			i++
			j++
			continue
		}
		switch order := compare(a[i], b[j]); {
		case order == 0:
			gone, more = append(gone, a[i]), append(more, b[j])
			i++
			j++
		case order < 0:
			gone = append(gone, a[i])
			i++
		default:
			more = append(more, b[j])
			j++
		}
	}
	gone, more = append(gone, a[i:]...), append(more, b[j:]...)
	return without(gone, more), without(more, gone)
}

func compare[T any, P named[T]](a, b P) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// without are the objects of a that are not in b.
func without[P comparable](a, b []P) []P {
	if len(a) == 0 || len(b) == 0 {
		return a
	}
	there := make(map[P]bool, len(b))
	for _, x := range b {
		there[x] = true
	}
	var left []P
	for _, x := range a {
		if !there[x] {
			left = append(left, x)
		}
	}
	return left
}

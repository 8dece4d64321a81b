package podinformer

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxResources is how many resources of a pod are read. Nodes have a dozen.
const maxResources = 128

// TooManyResources is requested by a pod that requests more than are read. No node has it, as none has all that such a pod requests.
const TooManyResources corev1.ResourceName = "gangctl.dev/too-many-resources"

// trimResources bounds what a pod requests. Users may write tens of thousands of resources, and all that compares pods with nodes sums them
// again. Devices of which none is requested are dropped: they require nothing of a node.
func trimResources(spec *corev1.PodSpec) {
	names := sets.New[corev1.ResourceName]()
	for list := range resourceLists(spec) {
		for name, quantity := range list {
			if strings.Contains(string(name), "/") && quantity.IsZero() {
				delete(list, name)
				continue
			}
			names.Insert(name)
		}
	}
	if len(names) <= maxResources {
		return
	}
	read := sets.New(slices.SortedFunc(maps.Keys(names), nativeFirst)[:maxResources]...)
	for list := range resourceLists(spec) {
		maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool { return !read.Has(name) })
	}
	first := &spec.Containers[0].Resources // a pod has one
	if first.Requests == nil {
		first.Requests = corev1.ResourceList{}
	}
	first.Requests[TooManyResources] = resource.MustParse("1")
}

// nativeFirst orders resources: cpu, memory and storage, then huge pages, then devices. Whatever else it requests, a pod that has a node is
// charged for the first.
func nativeFirst(a, b corev1.ResourceName) int {
	rank := func(name corev1.ResourceName) int {
		switch {
		case strings.Contains(string(name), "/"):
			return 2
		case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// resourceLists are the lists of requests and limits of a pod's containers.
func resourceLists(spec *corev1.PodSpec) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				if r := &containers[i].Resources; !yield(r.Requests) || !yield(r.Limits) {
					return
				}
			}
		}
	}
}

// Package bounds limits how much the scheduler reads of what users write.
package bounds

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

const (
	// maxResources is how many resources of a pod are read. Nodes have a dozen.
	maxResources = 128
	// maxTerms is how many terms of a pod are read: what its selectors, affinity, tolerations and constraints are made of, its volumes, claims and
	// containers.
	maxTerms = 1000
)

// TooManyRequirements is the resource that a pod requests in place of the requirements that are not read. No node has it.
const TooManyRequirements corev1.ResourceName = "gangctl.dev/too-many-requirements"

// Pod limits what a pod requires of its node. Users may write tens of thousands of resources and terms, which are compared with every node and, if
// they are about other pods, with every pod, while nothing else is scheduled. A pod with more than are read gets no node. One that another
// scheduler gave a node is charged for its cpu, memory and storage.
func Pod(spec *corev1.PodSpec) {
	cut := boundResources(spec)
	if terms(spec) > maxTerms {
		spec.Affinity, spec.NodeSelector, spec.Tolerations, spec.TopologySpreadConstraints, spec.Volumes, spec.ResourceClaims = nil, nil, nil, nil, nil, nil
		for c := range containers(spec) {
			c.Ports = nil
		}
		cut = true
	}
	if cut && len(spec.Containers) > 0 { // every pod has one
		first := &spec.Containers[0].Resources
		if first.Requests == nil {
			first.Requests = corev1.ResourceList{}
		}
		first.Requests[TooManyRequirements] = resource.MustParse("1")
	}
}

// charged are the resources that a pod with too many of them is read with: if another scheduler gave it a node, that has less of them.
var charged = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// boundResources limits the resources of a pod, and reports whether it has more. Devices of which none is requested are dropped: they require
// nothing of a node. It looks at tens of thousands while the events of all other pods wait, so it neither sorts nor gathers them.
func boundResources(spec *corev1.PodSpec) bool {
	requests := 0
	for list := range resourceLists(spec) {
		request.DropUnrequested(*list)
		requests += len(*list)
	}
	if requests <= maxResources || !moreThan(maxResources, spec) {
		return false
	}
	for list := range resourceLists(spec) {
		all := *list
		*list = corev1.ResourceList{}
		for _, name := range charged {
			if amount, ok := all[name]; ok {
				(*list)[name] = amount
			}
		}
	}
	return true
}

// moreThan reports whether a pod has more resources than n, of different names.
func moreThan(n int, spec *corev1.PodSpec) bool {
	names := sets.New[corev1.ResourceName]()
	for list := range resourceLists(spec) {
		for name := range *list {
			if names.Insert(name); len(names) > n {
				return true
			}
		}
	}
	return false
}

// containers are a pod's init containers and containers. An init container that restarts holds its ports and resources as others do.
func containers(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// resourceLists are the lists of requests and limits of a pod and of its containers.
func resourceLists(spec *corev1.PodSpec) iter.Seq[*corev1.ResourceList] {
	return func(yield func(*corev1.ResourceList) bool) {
		if r := spec.Resources; r != nil && (!yield(&r.Requests) || !yield(&r.Limits)) {
			return
		}
		for c := range containers(spec) {
			if r := &c.Resources; !yield(&r.Requests) || !yield(&r.Limits) {
				return
			}
		}
	}
}

// terms counts what a pod requires of its node besides resources.
func terms(spec *corev1.PodSpec) int {
	n := len(spec.NodeSelector) + len(spec.Tolerations) + len(spec.Volumes) + len(spec.ResourceClaims)
	for c := range containers(spec) {
		n += 1 + len(c.Ports)
	}
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		n += 1 + request.SelectorTerms(c.LabelSelector) + len(c.MatchLabelKeys)
	}
	if spec.Affinity == nil {
		return n
	}
	if a := spec.Affinity.NodeAffinity; a != nil {
		if a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for i := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				n += nodeTerms(&a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i])
			}
		}
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			n += nodeTerms(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		n += podTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		n += podTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return n
}

func nodeTerms(term *corev1.NodeSelectorTerm) int {
	n := 1
	for _, all := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
		for i := range all {
			n += 1 + len(all[i].Values)
		}
	}
	return n
}

func podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) (n int) {
	count := func(term *corev1.PodAffinityTerm) {
		n += 1 + request.SelectorTerms(term.LabelSelector) + request.SelectorTerms(term.NamespaceSelector) + len(term.Namespaces) + len(term.MatchLabelKeys) + len(term.MismatchLabelKeys)
	}
	for i := range required {
		count(&required[i])
	}
	for i := range preferred {
		count(&preferred[i].PodAffinityTerm)
	}
	return n
}

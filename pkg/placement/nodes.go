package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
)

// Uncordoned returns the node without spec.unschedulable and its taint; n itself if it is not cordoned.
func Uncordoned(n *corev1.Node) *corev1.Node {
	cordoned := n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, cordonTaint)
	if !cordoned {
		return n
	}
	n = n.DeepCopy()
	n.Spec.Unschedulable = false
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, cordonTaint)
	return n
}

// Repaired returns the node with a Ready condition of True and without the taints that say that it has a problem; n itself
// if it has none.
func Repaired(n *corev1.Node) *corev1.Node {
	if ready(n) == corev1.ConditionTrue && !slices.ContainsFunc(n.Spec.Taints, problemTaint) {
		return n
	}
	n = n.DeepCopy()
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, problemTaint)
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			n.Status.Conditions[i].Status = corev1.ConditionTrue
		}
	}
	return n
}

// AtCapacity returns the node with every extended resource (devices) allocatable up to its capacity; n itself if it is.
// CPU, memory and storage keep what the system reserves.
func AtCapacity(n *corev1.Node) *corev1.Node {
	out := n
	for name, capacity := range n.Status.Capacity {
		if v1helper.IsExtendedResourceName(name) && capacity.Cmp(n.Status.Allocatable[name]) > 0 {
			if out == n {
				out = n.DeepCopy()
			}
			if out.Status.Allocatable == nil {
				out.Status.Allocatable = corev1.ResourceList{}
			}
			out.Status.Allocatable[name] = capacity
		}
	}
	return out
}

// ready is the status of the Ready condition; a node that does not report one counts as ready, as for the scheduler.
func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionTrue
}

func cordonTaint(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }

// problemTaint recognises the taints by which Kubernetes and cloud providers mark a node that is not fit for use.
func problemTaint(t corev1.Taint) bool {
	return !cordonTaint(t) &&
		(strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/"))
}

// taintWord is the constraint that a taint is reported as.
func taintWord(t corev1.Taint) Constraint {
	switch {
	case cordonTaint(t):
		return Cordon
	case problemTaint(t):
		return NotReady
	}
	return Taint
}

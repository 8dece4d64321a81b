package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// vector has one amount for each resource, by its position in the cluster's names. Missing positions are zero.
// CPU is in thousandths of a core, everything else in the resource's own unit.
type vector []int64

func (v vector) at(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// The positions that every cluster has.
const (
	posPods = iota
	posCPU
	posMemory
	posEphemeral
	posScalars
)

// names numbers the resources that the nodes of a cluster offer. It is never changed once built.
type names struct {
	list  []corev1.ResourceName
	index map[corev1.ResourceName]int
}

func newNames() *names {
	n := &names{index: map[corev1.ResourceName]int{}}
	for _, r := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		n.index[r] = len(n.list)
		n.list = append(n.list, r)
	}
	return n
}

// with returns names that also number what a node offers; n itself if that is all there. What pods request and no node offers has no number: users
// choose those names, and there is no end of them.
func (n *names) with(offered *framework.Resource) *names {
	missing := map[corev1.ResourceName]bool{}
	for r := range offered.ScalarResources {
		if _, ok := n.index[r]; !ok {
			missing[r] = true
		}
	}
	if len(missing) == 0 {
		return n
	}
	out := &names{list: slices.Clone(n.list), index: maps.Clone(n.index)}
	for _, r := range slices.Sorted(maps.Keys(missing)) {
		out.index[r] = len(out.list)
		out.list = append(out.list, r)
	}
	return out
}

func (n *names) vector(r *framework.Resource, pods int) vector {
	v := make(vector, len(n.list))
	v[posPods], v[posCPU], v[posMemory], v[posEphemeral] = int64(pods), r.MilliCPU, r.Memory, r.EphemeralStorage
	for name, amount := range r.ScalarResources {
		if at, known := n.index[name]; known {
			v[at] = amount
		}
	}
	return v
}

func chargedTo(pod *corev1.Pod) *framework.Resource {
	r := &framework.Resource{}
	r.SetMaxResource(request.Of(pod))
	return r
}

// Charge is what a pod is charged on its node, parsed.
type Charge struct{ of *framework.Resource }

// ChargeOf returns the charge of a pod.
func ChargeOf(pod *corev1.Pod) Charge { return Charge{chargedTo(pod)} }

// Affords reports whether some node has as much left as a pod is charged. Where none has, there is no place for the pod.
func (c *Cluster) Affords(charge Charge) bool {
	for name, amount := range charge.of.ScalarResources {
		if _, offered := c.names.index[name]; !offered && amount > 0 {
			return false
		}
	}
	amounts := c.names.vector(charge.of, 1)
	return slices.ContainsFunc(c.nodes, func(n *node) bool {
		for i, amount := range amounts {
			if amount > 0 && amount > n.alloc.at(i)-n.used.at(i) {
				return false
			}
		}
		return true
	})
}

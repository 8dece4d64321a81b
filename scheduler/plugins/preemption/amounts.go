package preemption

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// amounts are what the nodes lack for the members that a placement has on them, and what each unit would free there. A node that still lacks some
// of it cannot take them, whatever else holds; one that lacks nothing may refuse them for another reason.
type amounts struct {
	lacking map[string]map[corev1.ResourceName]int64 // by node, with all candidates there
	freed   map[string][]freed                       // by node
}

// freed is what a pod of a unit frees of the resources that its node lacks.
type freed struct {
	unit int
	of   map[corev1.ResourceName]int64
}

// amountsOn reads the amounts of the nodes that members are assigned to, by role.
func (s *search) amountsOn(assigned map[string]map[string]int32) amounts {
	a := amounts{lacking: map[string]map[corev1.ResourceName]int64{}, freed: map[string][]freed{}}
	for node, counts := range assigned {
		lacking, free := map[corev1.ResourceName]int64{}, s.Cluster.Free(node)
		for _, role := range s.Gang.Roles {
			for name, q := range request.Of(role.Pod) {
				lacking[name] += request.Amount(name, q) * int64(counts[role.Name])
			}
		}
		for name := range lacking {
			if lacking[name] -= request.Amount(name, free[name]); lacking[name] <= 0 {
				delete(lacking, name)
			}
		}
		a.lacking[node] = lacking
	}
	for i, u := range s.units {
		for _, pod := range u.Pods {
			f := freed{i, map[corev1.ResourceName]int64{}}
			for name := range a.lacking[pod.Spec.NodeName] {
				f.of[name] = request.OfResource(pod, name)
			}
			if len(f.of) > 0 {
				a.freed[pod.Spec.NodeName] = append(a.freed[pod.Spec.NodeName], f)
			}
		}
	}
	return a
}

// suffice reports whether the nodes of a unit lack nothing when a set is evicted.
func (a amounts) suffice(evicted set, u Unit) bool {
	for _, pod := range u.Pods {
		for name, lacking := range a.lacking[pod.Spec.NodeName] {
			for _, f := range a.freed[pod.Spec.NodeName] {
				if evicted[f.unit] {
					lacking -= f.of[name]
				}
			}
			if lacking > 0 {
				return false
			}
		}
	}
	return true
}

package preemption

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// amounts are what the nodes lack for the members that a placement has on them, and what each unit would free there. A node that still lacks some
// of it takes them in no case; one that lacks nothing may refuse them for another reason.
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
	for _, role := range s.Gang.Roles {
		one := map[corev1.ResourceName]int64{corev1.ResourcePods: 1}
		for name, q := range request.Of(role.Pod) {
			if amount := request.Amount(name, q); amount > 0 {
				one[name] = amount
			}
		}
		for node, counts := range assigned {
			if a.lacking[node] == nil {
				a.lacking[node] = map[corev1.ResourceName]int64{}
			}
			if n := int64(counts[role.Name]); n > 0 { // of what no member there requests nothing is lacking, however much of it is taken
				for name, amount := range one {
					a.lacking[node][name] += n * amount
				}
			}
		}
	}
	for node, lacking := range a.lacking {
		free := s.Cluster.Free(node)
		for name := range lacking {
			if lacking[name] -= request.Amount(name, free[name]); lacking[name] <= 0 {
				delete(lacking, name)
			}
		}
	}
	for i, u := range s.units {
		for _, pod := range u.Pods {
			if lacking := a.lacking[pod.Spec.NodeName]; len(lacking) > 0 {
				a.freed[pod.Spec.NodeName] = append(a.freed[pod.Spec.NodeName], freed{i, charged(pod, lacking)})
			}
		}
	}
	return a
}

// charged is what a pod is charged on its node of some resources.
func charged(pod *corev1.Pod, of map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	all, some := request.OfRunning(pod), map[corev1.ResourceName]int64{}
	for name := range of {
		q := all[name]
		some[name] = request.Amount(name, q)
	}
	if _, counted := of[corev1.ResourcePods]; counted {
		some[corev1.ResourcePods] = 1
	}
	return some
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

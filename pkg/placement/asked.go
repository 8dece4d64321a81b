package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// Asked returns what Request charges a pod of one resource, in the unit of Quantity; of the places that a node has for pods it is
// one. For most pods, whose containers start at
// once and of which one asks for the resource, it takes no sum: that is worth it for the pods of a whole cluster.
func Asked(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	spec := &pod.Spec
	if len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil {
		asking, at := 0, 0
		for i := range spec.Containers {
			if _, ok := spec.Containers[i].Resources.Requests[name]; ok {
				asking, at = asking+1, i
			}
		}
		switch asking {
		case 0:
			return 0
		case 1:
			return Amount(name, spec.Containers[at].Resources.Requests[name])
		}
	}
	return Amount(name, Request(pod)[name])
}

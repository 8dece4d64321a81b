package stage

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// untolerated is how kube-scheduler and the cluster autoscaler report taints: 1 node(s) had untolerated taint {nvidia.com/gpu: present}.
var untolerated = regexp.MustCompile(`untolerated taint\(?s?\)? \{([^:{}\s]+)(?:: ?([^{}]*))?\}`)

// UntoleratedTaints are the taints, without their effects, that a report names of nodes which members do not tolerate.
func UntoleratedTaints(message string) (all []corev1.Taint) {
	for _, m := range untolerated.FindAllStringSubmatch(message, -1) {
		all = append(all, corev1.Taint{Key: m[1], Value: m[2]})
	}
	return all
}

// TaintName is a taint without its effect, as reports and kubectl have it: key=value.
func TaintName(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key
	}
	return t.Key + "=" + t.Value
}

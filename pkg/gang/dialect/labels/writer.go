package labels

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// Writer writes this dialect, which has no object.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.Labels, Scheduler: schedulerplugins.DefaultScheduler,
		Mark: func(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) {
			Mark(&pod.ObjectMeta, d.Key.Name, d.MinMember)
		},
	}
}

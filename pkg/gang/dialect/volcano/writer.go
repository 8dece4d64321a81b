package volcano

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Writer writes this dialect.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.Volcano, Versions: []schema.GroupVersion{{Group: Group, Version: "v1beta1"}}, Scheduler: SchedulerName, Queues: true,
		Object: gang.NewGroup,
		Mark: func(pod *corev1.PodTemplateSpec, d gang.Declaration, role string) {
			Mark(&pod.ObjectMeta, d.Key.Name)
			if role != "" {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, roleAnnotation, role)
			}
		},
	}
}

// Mark makes a pod, or the pods of a template, members of the named PodGroup.
func Mark(meta *metav1.ObjectMeta, name string) {
	metav1.SetMetaDataAnnotation(meta, GroupAnnotation, name)
}

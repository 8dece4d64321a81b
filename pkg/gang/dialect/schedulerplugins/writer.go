package schedulerplugins

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// DefaultScheduler is the name under which gangctl's own scheduler serves.
const DefaultScheduler = "gang-scheduler"

// Writer writes this dialect.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.SchedulerPlugins, Versions: []schema.GroupVersion{GVK().GroupVersion()}, Scheduler: DefaultScheduler,
		Object: func(d gang.Declaration, version schema.GroupVersion) *unstructured.Unstructured {
			d.Queue, d.PriorityClass = "", "" // which it does not have
			return gang.NewGroup(d, version)
		},
		Mark: func(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) { Mark(&pod.ObjectMeta, d.Key.Name) },
	}
}

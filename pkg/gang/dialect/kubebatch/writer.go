package kubebatch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Writer writes this dialect.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.KubeBatch, Scheduler: SchedulerName, Queues: true,
		Versions: []schema.GroupVersion{{Group: "scheduling.incubator.k8s.io", Version: "v1alpha1"}, {Group: "scheduling.sigs.dev", Version: "v1alpha2"}},
		Object: func(d gang.Declaration, version schema.GroupVersion) *unstructured.Unstructured {
			d.MinResources = nil // which it does not have
			return gang.NewGroup(d, version)
		},
		Mark: func(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) {
			volcano.Mark(&pod.ObjectMeta, d.Key.Name)
		},
	}
}

// Package kubebatch reads the PodGroups of kube-batch, in both API groups under which they were served
// (scheduling.incubator.k8s.io/v1alpha1 and scheduling.sigs.dev/v1alpha2). Its pods carry the same annotation as Volcano's,
// so the object's group decides.
package kubebatch

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// SchedulerName is the name that tf-operator v0.5 writes into pods.
const SchedulerName = "kube-batch"

// Groups are the API groups of PodGroup and Queue.
func Groups() []string { return []string{"scheduling.incubator.k8s.io", "scheduling.sigs.dev"} }

// Reader reads this dialect.
func Reader() gang.Reader {
	r := gang.Reader{
		Dialect: gang.KubeBatch, Schedulers: []string{SchedulerName}, NameOf: volcano.NameOf,
		Decode: func(u *unstructured.Unstructured) (gang.Declaration, error) {
			d, err := gang.DecodeGroup(gang.KubeBatch, u)
			d.Queue = cmp.Or(d.Queue, volcano.DefaultQueue)
			return d, err
		},
	}
	for _, group := range Groups() {
		r.Kinds = append(r.Kinds, gang.Served{GroupKind: schema.GroupKind{Group: group, Kind: "PodGroup"}, Resource: "podgroups"})
	}
	return r
}

// Writer writes this dialect.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.KubeBatch, Scheduler: SchedulerName, Queues: true, Prefers: true,
		Versions: []schema.GroupVersion{{Group: "scheduling.incubator.k8s.io", Version: "v1alpha1"}, {Group: "scheduling.sigs.dev", Version: "v1alpha2"}},
		Object: func(d gang.Declaration, version schema.GroupVersion) *unstructured.Unstructured {
			d.MinResources = nil // which it does not have
			return gang.NewGroup(d, version)
		},
		SetGroup: func(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) {
			volcano.SetGroup(&pod.ObjectMeta, d.Key.Name)
		},
	}
}

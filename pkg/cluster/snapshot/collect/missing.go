package collect

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// missing are pods that a job lacks, one for each role, as its operator would create them. Of a gang that no job owns the template is not read: what
// its pods have besides is the API server's.
func missing(s *snapshot.Snapshot, job view.Query) []*corev1.Pod {
	s.Finish()
	w := view.New(within(s, job.Namespace))
	found, err := w.Find(job)
	if err != nil {
		return nil // there is no such job, or several: the answer reports it
	}
	if found.Bare != nil {
		return nil
	}
	g := w.Gang(found)
	seen := map[string]bool{}
	var pods []*corev1.Pod
	for _, m := range g.Members {
		if m.State != gang.Missing || seen[m.Role] || g.Suspended {
			continue
		}
		seen[m.Role] = true
		role := g.RoleByName(m.Role)
		pod := w.Virtual(g, m)
		// As the operator sends it: what admission fills in is admission's business.
		pod.Spec = *role.Template.Spec.DeepCopy()
		pod.Spec.SchedulerName = g.Scheduler
		pod.UID = types.UID("")
		if g.Meta.UID == "" {
			pod.OwnerReferences = nil // of a job that is not created yet: an owner must have a uid
		}
		pods = append(pods, pod)
	}
	return pods
}

// within is the snapshot with the jobs, the groups and the pods of one namespace: what is to be known of a job there.
func within(s *snapshot.Snapshot, namespace string) *snapshot.Snapshot {
	part := *s
	part.Pods, part.Jobs, part.Custom = inNamespace(s.Pods, namespace), inNamespace(s.Jobs, namespace), map[schema.GroupKind][]*unstructured.Unstructured{}
	for kind, list := range s.Custom {
		part.Custom[kind] = inNamespace(list, namespace)
	}
	return &part
}

// inNamespace are the objects of a namespace, and those that have none.
func inNamespace[P metav1.Object](list []P, namespace string) []P {
	var some []P
	for _, obj := range list {
		if in := obj.GetNamespace(); in == namespace || in == "" {
			some = append(some, obj)
		}
	}
	return some
}

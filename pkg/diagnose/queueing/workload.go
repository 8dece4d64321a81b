package queueing

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// JobOf is the job that owns a Workload; nil if it is not seen.
func JobOf(v *view.View, wl *unstructured.Unstructured) *gang.Job {
	for _, ref := range wl.GetOwnerReferences() {
		if job := v.JobWithUID(wl.GetNamespace(), ref.UID); job != nil {
			return job
		}
	}
	return nil
}

// JobName is the name of the job behind a Workload: the one that is known, or else its first owner, or itself.
func JobName(v *view.View, wl *unstructured.Unstructured) audience.Thing {
	if job := JobOf(v, wl); job != nil {
		return audience.New(job.Kind.Kind, job.Meta.Namespace, job.Meta.Name)
	}
	for _, ref := range wl.GetOwnerReferences() {
		return audience.New(ref.Kind, wl.GetNamespace(), ref.Name)
	}
	return audience.New(wl.GetKind(), wl.GetNamespace(), wl.GetName())
}

// ownersSeenAfter is how old a Workload has to be before the lack of its job means anything: lists are not of the same moment, and what is deleted goes bit by bit.
const ownersSeenAfter = 5 * time.Minute

// ChangesWorkloads is who may change a Workload: Kueue's own roles let users of its queues read them, and those alone who administer it change them. A user has the job made again
// instead, which gets another one.
const ChangesWorkloads = answer.Admin

// SetActive is the command that switches a Workload on, or off: Kueue evicts it then.
func SetActive(wl *unstructured.Unstructured, active bool) string {
	return command.MergePatch(wl.GetNamespace(), "workload."+kueue.Group, wl.GetName(), map[string]any{"spec": map[string]any{"active": active}})
}

// longAgo reports whether a time is known, and so long ago.
func longAgo(v *view.View, at metav1.Time) bool {
	return !at.IsZero() && v.Age(at.Time) > ownersSeenAfter
}

// Abandoned reports whether a Workload is ownerless, and nothing is about to remove it.
func Abandoned(v *view.View, wl *unstructured.Unstructured) bool {
	return Ownerless(v, wl) && (wl.GetDeletionTimestamp() == nil || longAgo(v, *wl.GetDeletionTimestamp()))
}

// Ownerless reports whether what a Workload was made for is gone: none of its owners is there, all of which would be seen, nor what one has made, or it was made for a job and no
// longer has an owner. The copy of a Workload in a worker cluster of MultiKueue has none before its job is made.
func Ownerless(v *view.View, wl *unstructured.Unstructured) bool {
	if !longAgo(v, wl.GetCreationTimestamp()) {
		return false
	}
	refs := wl.GetOwnerReferences()
	if len(refs) == 0 {
		_, copied := wl.GetLabels()[kueue.OriginLabel]
		return wl.GetLabels()[kueue.JobUIDLabel] != "" && !copied
	}
	return JobOf(v, wl) == nil && !slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return !gone(v, wl.GetNamespace(), ref) })
}

// gone reports whether an owner would be seen, and is not, nor what it has made.
func gone(v *view.View, namespace string, ref metav1.OwnerReference) bool {
	if podsAndOwners(v)[gang.Identity{Namespace: namespace, UID: ref.UID}] {
		return false
	}
	kind := gang.OwnerKind(&ref)
	if kind.Kind == "Pod" && kind.Group == "" {
		return listed(v, schema.GroupResource{Resource: "pods"}, kind, namespace)
	}
	reader, known := kinds.ByKind(kind)
	if !known || !listed(v, schema.GroupResource{Group: reader.Group, Resource: reader.Resource}, kind, namespace) {
		return false
	}
	if kind.Group == batchv1.GroupName {
		job := v.BatchJob(namespace, ref.Name)
		return job == nil || job.UID != "" && job.UID != ref.UID
	}
	job := v.Object(kind, namespace, ref.Name)
	return job == nil || job.GetUID() != "" && job.GetUID() != ref.UID
}

// listed reports whether the objects of a kind in a namespace were read. Of a file that holds no more than objects, one of them there shows it.
func listed(v *view.View, resource schema.GroupResource, kind schema.GroupKind, namespace string) bool {
	if !v.Snap.CanList(resource.String(), namespace) {
		return false
	}
	if v.Snap.Server.Resources != nil {
		return resource.Group == "" || resource.Group == batchv1.GroupName || v.Snap.Serves(resource, kind.Kind) // Kubernetes itself serves these
	}
	type namespaces struct{ kind schema.GroupKind }
	return view.Once(v, namespaces{kind}, func() map[string]bool {
		all := map[string]bool{}
		switch kind {
		case schema.GroupKind{Kind: "Pod"}:
			for _, p := range v.Snap.Pods {
				all[p.Namespace] = true
			}
		case batchjob.GroupKind():
			for _, j := range v.Snap.Jobs {
				all[j.Namespace] = true
			}
		default:
			for _, u := range v.Snap.Custom[kind] {
				all[u.GetNamespace()] = true
			}
		}
		return all
	})[namespace]
}

// podsAndOwners are all pods, and the controllers of pods and of Jobs of Kubernetes.
func podsAndOwners(v *view.View) map[gang.Identity]bool {
	type seen struct{}
	return view.Once(v, seen{}, func() map[gang.Identity]bool {
		all := map[gang.Identity]bool{}
		for _, p := range v.Snap.Pods {
			all[gang.IdentityOf(p)] = true
			if owner, ok := gang.ControllerOf(p); ok {
				all[owner] = true
			}
		}
		for _, j := range v.Snap.Jobs {
			if owner, ok := gang.ControllerOf(j); ok {
				all[owner] = true
			}
		}
		return all
	})
}

// HeldByGate reports whether Kueue holds pods of the gang by a scheduling gate.
func HeldByGate(g *gang.Gang) bool {
	return slices.ContainsFunc(g.Members, func(m gang.Member) bool {
		return m.State == gang.Gated && slices.ContainsFunc(m.Pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return IsGate(gate.Name) })
	})
}

// IsGate reports whether a scheduling gate is one of Kueue's.
func IsGate(name string) bool { return strings.HasPrefix(name, kueue.Group+"/") }

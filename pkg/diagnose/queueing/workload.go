package queueing

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// Admitted reports whether Kueue has admitted a Workload.
func Admitted(u *unstructured.Unstructured) bool {
	_, status := stage.Condition(u, "Admitted")
	return status == "True"
}

// Workload is Kueue's view of the job. That of a group of pods is owned by each of them; of a job of several gangs each has one, which the job owns. Of several, as where Kueue
// makes another one for a job that has changed, the one that has not finished counts, and of an elastic job that has grown the one that replaces the other.
func Workload(v *view.View, g *gang.Gang) *unstructured.Unstructured {
	type byOwner struct{}
	owned := view.Once(v, byOwner{}, func() map[gang.Identity][]*unstructured.Unstructured {
		owned := map[gang.Identity][]*unstructured.Unstructured{}
		for _, u := range v.Snap.Custom[kueue.Kind("Workload")] {
			for _, ref := range u.GetOwnerReferences() {
				id := gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID}
				owned[id] = append(owned[id], u)
			}
		}
		return owned
	})
	uids := []types.UID{g.Meta.UID}
	for _, p := range g.Bare {
		uids = append(uids, p.UID)
	}
	var mine *unstructured.Unstructured
	for _, uid := range uids {
		for _, u := range owned[gang.Identity{Namespace: g.Meta.Namespace, UID: uid}] {
			if uid == "" || !isOfReplica(u, g) {
				continue
			}
			if mine == nil || precedes(u, mine) {
				mine = u
			}
		}
	}
	return mine
}

// precedes reports whether one Workload of a job counts instead of another.
func precedes(u, other *unstructured.Unstructured) bool {
	rank := func(u *unstructured.Unstructured) int {
		_, finished := stage.Condition(u, "Finished")
		switch {
		case finished == "True" || u.GetDeletionTimestamp() != nil:
			return 2
		case u.GetAnnotations()[kueue.ReplacesAnnotation] == "":
			return 1
		}
		return 0
	}
	return rank(u) < rank(other)
}

// isOfReplica reports whether a Workload is not that of another replica of a job.
func isOfReplica(u *unstructured.Unstructured, g *gang.Gang) bool {
	index, ok := u.GetAnnotations()[kueue.IndexAnnotation]
	return !ok || g.Replica == nil || index == strconv.Itoa(int(*g.Replica))
}

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

// settledAfter is how old a Workload has to be before the lack of its job means anything: lists are not of the same moment, and what is deleted goes bit by bit.
const settledAfter = 5 * time.Minute

// settled reports whether a time is known, and long ago.
func settled(v *view.View, at metav1.Time) bool { return !at.IsZero() && v.Age(at.Time) > settledAfter }

// Abandoned reports whether a Workload is ownerless, and nothing is about to remove it.
func Abandoned(v *view.View, wl *unstructured.Unstructured) bool {
	return Ownerless(v, wl) && (wl.GetDeletionTimestamp() == nil || settled(v, *wl.GetDeletionTimestamp()))
}

// Ownerless reports whether what a Workload was made for is gone: none of its owners is there, all of which would be seen, nor what one has made, or it was made for a job and no
// longer has an owner. The copy of a Workload in a worker cluster of MultiKueue has none before its job is made.
func Ownerless(v *view.View, wl *unstructured.Unstructured) bool {
	if !settled(v, wl.GetCreationTimestamp()) {
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
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
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
		case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
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

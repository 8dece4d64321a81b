package view

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/placement"
)

// What is assumed of a cluster is mostly about one job that waits: another spec, and other pods of it that have no node. What is known of all that uses nodes stays then.

// podChanges are the pods of the view that this one is derived from which are not in this one, and those of this one which were not in that.
type podChanges struct{ gone, more []*corev1.Pod }

func (w *View) comparePods() podChanges {
	if w.base == nil {
		return podChanges{}
	}
	gone, more := difference(w.base.Snap.Pods, w.Snap.Pods)
	return podChanges{gone, more}
}

// sameConsumers reports whether what uses nodes is the same as in the view that this one is derived from, with the same jobs behind it: it is where only pods differ that have no node, and
// jobs that have no other pods. It is false where that would take as long to find out as who they are.
func (w *View) sameConsumers() bool {
	if w.base == nil || slices.ContainsFunc(slices.Concat(w.pods().gone, w.pods().more), w.matters) {
		return false
	}
	s, before := w.Snap, w.base.Snap
	if !slices.Equal(s.ReplicaSets, before.ReplicaSets) || !slices.Equal(s.Deployments, before.Deployments) || !slices.Equal(s.StatefulSets, before.StatefulSets) {
		return false
	}
	using := w.base.jobsOnNodes()
	if gone, more := difference(before.Jobs, s.Jobs); !sameOwners(gone, more) ||
		slices.ContainsFunc(slices.Concat(gone, more), func(j *batchv1.Job) bool { return using.Has(gang.IdentityOf(j)) || w.convert(j).End != nil }) {
		return false
	}
	if len(s.Custom) != len(before.Custom) {
		return false
	}
	for kind, list := range s.Custom {
		if gone, more := difference(before.Custom[kind], list); !sameOwners(gone, more) ||
			slices.ContainsFunc(slices.Concat(gone, more), func(u *unstructured.Unstructured) bool { return w.concerns(kind, u, using) }) {
			return false
		}
	}
	return true
}

// matters reports whether a pod that comes or goes changes what uses nodes: it uses one, or others are what it makes, or what it keeps room for.
func (w *View) matters(p *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(p)
	reader, _ := dialect.ReaderOf(gang.YuniKorn)
	_, grouped := reader.GroupOf(p)
	return placement.Holds(p) || ref != nil && ref.Kind == podKind().Kind || grouped || len(w.base.byController().of(gang.IdentityOf(p))) > 0
}

// concerns reports whether an object that is another one changes what is known of jobs that use nodes.
func (w *View) concerns(kind schema.GroupKind, u *unstructured.Unstructured, using sets.Set[gang.Identity]) bool {
	if kind == kueue.Kind("Workload") {
		return slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return using.Has(gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID})
		})
	}
	if native, known := dialect.ReaderOf(gang.Native); known && slices.ContainsFunc(native.Kinds, func(k gang.Served) bool { return k.GroupKind == kind }) {
		return true // it has the priority of its pods
	}
	reader, job := kinds.ByKind(kind)
	if !job {
		return false
	}
	read := w.decodeOne(reader, u)
	return read == nil || read.End != nil || using.Has(gang.IdentityOf(u))
}

// sameOwners reports whether objects that are others than before have the same names and owners.
func sameOwners[P metav1.Object](gone, more []P) bool {
	return slices.EqualFunc(gone, more, func(a, b P) bool {
		return a.GetName() == b.GetName() && gang.IdentityOf(a) == gang.IdentityOf(b) && equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
	})
}

// jobsOnNodes are the jobs that use nodes.
func (w *View) jobsOnNodes() sets.Set[gang.Identity] {
	type onNodes struct{}
	return Once(w, onNodes{}, func() sets.Set[gang.Identity] {
		all := sets.New[gang.Identity]()
		for _, h := range w.Consumers() {
			if h.Job != nil {
				all.Insert(gang.IdentityOf(&h.Job.Meta))
			}
		}
		return all
	})
}

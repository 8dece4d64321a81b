package view

import (
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Workload is Kueue's view of a job; nil for a job that Kueue does not run. That of a group of pods is owned by each of them; of a job of several gangs each has one, which the
// job owns. Of several, as where Kueue makes another one for a job that has changed, the one that has not finished counts, and of an elastic job that has grown the one that
// replaces the other.
func (w *View) Workload(job *gang.Job) *unstructured.Unstructured {
	uids := []types.UID{job.Meta.UID}
	for _, p := range job.Bare {
		uids = append(uids, p.UID)
	}
	isOf := w.ofReplica(job)
	var mine *unstructured.Unstructured
	for _, uid := range uids {
		for _, u := range w.WorkloadsOf(gang.Identity{Namespace: job.Meta.Namespace, UID: uid}) {
			if uid == "" || !isOf(u) {
				continue
			}
			if mine == nil || kueue.Precedes(u, mine) {
				mine = u
			}
		}
	}
	return mine
}

// WorkloadsOf are the Workloads that an object owns.
func (w *View) WorkloadsOf(owner gang.Identity) []*unstructured.Unstructured {
	type byOwner struct{}
	return Once(w, byOwner{}, func() map[gang.Identity][]*unstructured.Unstructured {
		owned := map[gang.Identity][]*unstructured.Unstructured{}
		for _, u := range w.Snap.Custom[kueue.Kind("Workload")] {
			for _, ref := range u.GetOwnerReferences() {
				id := gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID}
				owned[id] = append(owned[id], u)
			}
		}
		return owned
	})[owner]
}

// ofReplica returns the function that reports whether a Workload is not that of another replica of a job. Releases of Kueue that write no index have each pod name its
// Workload, and own it.
func (w *View) ofReplica(job *gang.Job) func(*unstructured.Unstructured) bool {
	pods := sync.OnceValue(func() []*corev1.Pod { return w.Gang(job).ExistingPods() })
	return func(u *unstructured.Unstructured) bool {
		index, ok := u.GetAnnotations()[kueue.IndexAnnotation]
		switch {
		case job.Replica == nil:
			return true
		case ok || job.Division != gang.ByPart:
			return !ok || index == strconv.Itoa(int(*job.Replica))
		}
		return slices.ContainsFunc(pods(), func(p *corev1.Pod) bool {
			return kueue.WorkloadNamed(p) == u.GetName() || slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == p.UID })
		})
	}
}

package view

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Workload is Kueue's view of a job; nil for a job that Kueue does not run. That of a group of pods is owned by each of them; of a job of several gangs each has one, which the
// job owns. Of several, as where Kueue makes another one for a job that has changed, the one that has not finished counts, and of an elastic job that has grown the one that
// replaces the other.
func (w *View) Workload(job *gang.Job) *unstructured.Unstructured {
	type byOwner struct{}
	owned := Once(w, byOwner{}, func() map[gang.Identity][]*unstructured.Unstructured {
		owned := map[gang.Identity][]*unstructured.Unstructured{}
		for _, u := range w.Snap.Custom[kueue.Kind("Workload")] {
			for _, ref := range u.GetOwnerReferences() {
				id := gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID}
				owned[id] = append(owned[id], u)
			}
		}
		return owned
	})
	uids := []types.UID{job.Meta.UID}
	for _, p := range job.Bare {
		uids = append(uids, p.UID)
	}
	var mine *unstructured.Unstructured
	for _, uid := range uids {
		for _, u := range owned[gang.Identity{Namespace: job.Meta.Namespace, UID: uid}] {
			if uid == "" || !isOfReplica(u, job) {
				continue
			}
			if mine == nil || kueue.Precedes(u, mine) {
				mine = u
			}
		}
	}
	return mine
}

// isOfReplica reports whether a Workload is not that of another replica of a job.
func isOfReplica(u *unstructured.Unstructured, job *gang.Job) bool {
	index, ok := u.GetAnnotations()[kueue.IndexAnnotation]
	return !ok || job.Replica == nil || index == strconv.Itoa(int(*job.Replica))
}

package whatif

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// Gone is the cluster after the pods are gone, with the jobs that owned them, what declared these gangs, and the quota that
// they were charged. owners are those jobs.
func Gone(s *snapshot.Snapshot, pods []*corev1.Pod, owners ...gang.Identity) *snapshot.Snapshot {
	if len(owners) == 0 {
		return (&Owned{}).Gone(s, pods)
	}
	return NewOwned(s).Gone(s, pods, owners...)
}

// Owned indexes the objects of one snapshot by owner, for repeated queries.
type Owned struct {
	custom map[gang.Identity][]*unstructured.Unstructured
	jobs   map[gang.Identity][]*batchv1.Job
}

// NewOwned looks through a snapshot.
func NewOwned(s *snapshot.Snapshot) *Owned {
	o := &Owned{map[gang.Identity][]*unstructured.Unstructured{}, map[gang.Identity][]*batchv1.Job{}}
	for _, list := range s.Custom {
		for _, u := range list {
			for _, id := range goesWith(u) {
				o.custom[id] = append(o.custom[id], u)
			}
		}
	}
	for _, j := range s.Jobs {
		for _, id := range goesWith(j) {
			o.jobs[id] = append(o.jobs[id], j)
		}
	}
	return o
}

// goesWith are the objects with which one goes: itself and its controller.
func goesWith(obj metav1.Object) []gang.Identity {
	ids := []gang.Identity{gang.IdentityOf(obj)}
	if owner, ok := gang.ControllerOf(obj); ok {
		ids = append(ids, owner)
	}
	return slices.DeleteFunc(ids, func(id gang.Identity) bool { return id.UID == "" })
}

// Gone is the function of that name, for the snapshot that was looked through.
func (o *Owned) Gone(s *snapshot.Snapshot, pods []*corev1.Pod, owners ...gang.Identity) *snapshot.Snapshot {
	c := s.Clone()
	c.Pods = minus(c.Pods, pods)
	c.ResourceQuotas = quota.Release(c.ResourceQuotas, pods)
	c.ResourceClaims = release(c.ResourceClaims, pods)
	claims := ownClaims(c.Claims, pods)
	c.Claims, c.ResourceQuotas = minus(c.Claims, claims), quota.ReleaseClaims(c.ResourceQuotas, claims)
	custom := map[schema.GroupKind][]*unstructured.Unstructured{}
	for _, p := range pods { // Kueue's Workload of a pod by itself
		if id := gang.IdentityOf(p); id.UID != "" && len(o.custom[id]) > 0 {
			owners = append(slices.Clip(owners), id)
		}
	}
	var jobs []*batchv1.Job
	for _, id := range owners {
		for _, u := range o.custom[id] {
			kind := u.GroupVersionKind().GroupKind()
			custom[kind] = append(custom[kind], u)
		}
		jobs = append(jobs, o.jobs[id]...)
	}
	for kind, list := range custom {
		c.Custom[kind] = minus(c.Custom[kind], list)
	}
	c.Jobs = minus(c.Jobs, jobs)
	return c
}

// ownClaims are the volume claims that were made for some pods alone, and go with them.
func ownClaims(claims []*corev1.PersistentVolumeClaim, pods []*corev1.Pod) (own []*corev1.PersistentVolumeClaim) {
	of := map[types.UID]bool{}
	for _, p := range pods {
		of[p.UID] = p.UID != ""
	}
	for _, claim := range claims {
		if owner := metav1.GetControllerOfNoCopy(claim); owner != nil && owner.Kind == "Pod" && of[owner.UID] {
			own = append(own, claim)
		}
	}
	return own
}

// minus is a list without some of its items.
func minus[T comparable](list, some []T) []T {
	if len(some) == 0 {
		return list
	}
	gone := make(map[T]bool, len(some))
	for _, item := range some {
		gone[item] = true
	}
	return slices.DeleteFunc(list, func(item T) bool { return gone[item] })
}

// Come is the cluster after more pods were made, with the quota that they are charged.
func Come(s *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	c := s.Clone()
	c.Pods = append(c.Pods, pods...)
	c.ResourceQuotas = quota.Take(c.ResourceQuotas, pods)
	return c
}

// Replaced is the cluster after the controller has made the successors of pods that are gone: they wait for nodes.
func Replaced(s *snapshot.Snapshot, gone []*corev1.Pod) *snapshot.Snapshot {
	var successors []*corev1.Pod
	for _, p := range gone {
		next := p.DeepCopy()
		next.UID, next.CreationTimestamp.Time = p.UID+"-successor", s.At
		next.DeletionTimestamp, next.DeletionGracePeriodSeconds, next.Finalizers = nil, nil, nil
		next.Spec.NodeName, next.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		successors = append(successors, next)
	}
	return Come(Gone(s, gone), successors)
}

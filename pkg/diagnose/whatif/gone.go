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
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// Gone is the cluster after the pods are gone, with the jobs that owned them, what declared these gangs, and the quota that
// they were charged. owners are the uids of those jobs.
func Gone(s *snapshot.Snapshot, pods []*corev1.Pod, owners ...types.UID) *snapshot.Snapshot {
	if len(owners) == 0 {
		return (&Owned{}).Gone(s, pods)
	}
	return NewOwned(s).Gone(s, pods, owners...)
}

// Owned indexes the objects of one snapshot by owner, for repeated queries.
type Owned struct {
	custom map[types.UID][]*unstructured.Unstructured
	jobs   map[types.UID][]*batchv1.Job
}

// NewOwned looks through a snapshot.
func NewOwned(s *snapshot.Snapshot) *Owned {
	o := &Owned{map[types.UID][]*unstructured.Unstructured{}, map[types.UID][]*batchv1.Job{}}
	for _, list := range s.Custom {
		for _, u := range list {
			for _, uid := range goesWith(u) {
				o.custom[uid] = append(o.custom[uid], u)
			}
		}
	}
	for _, j := range s.Jobs {
		for _, uid := range goesWith(j) {
			o.jobs[uid] = append(o.jobs[uid], j)
		}
	}
	return o
}

// goesWith are the uids with which an object goes: its own and that of its controller.
func goesWith(obj metav1.Object) []types.UID {
	uids := []types.UID{obj.GetUID()}
	if ref := metav1.GetControllerOf(obj); ref != nil {
		uids = append(uids, ref.UID)
	}
	return slices.DeleteFunc(uids, func(uid types.UID) bool { return uid == "" })
}

// Gone is the function of that name, for the snapshot that was looked through.
func (o *Owned) Gone(s *snapshot.Snapshot, pods []*corev1.Pod, owners ...types.UID) *snapshot.Snapshot {
	c := s.Clone()
	c.Pods = minus(c.Pods, pods)
	c.ResourceQuotas = quota.Release(c.ResourceQuotas, pods)
	c.ResourceClaims = release(c.ResourceClaims, pods)
	custom := map[schema.GroupKind][]*unstructured.Unstructured{}
	var jobs []*batchv1.Job
	for _, uid := range owners {
		for _, u := range o.custom[uid] {
			kind := u.GroupVersionKind().GroupKind()
			custom[kind] = append(custom[kind], u)
		}
		jobs = append(jobs, o.jobs[uid]...)
	}
	for kind, list := range custom {
		c.Custom[kind] = minus(c.Custom[kind], list)
	}
	c.Jobs = minus(c.Jobs, jobs)
	return c
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

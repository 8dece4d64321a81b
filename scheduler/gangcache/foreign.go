package gangcache

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// SetForeign records a pod that another scheduler is to place. If it carries the
// marks of a gang of ours, that gang waits for a member that never comes, and has
// to say so. Pods without marks cost nothing.
func (r *Roster) SetForeign(pod *corev1.Pod) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := claimsOf(pod, r.readers(pod.Spec.SchedulerName)).keys()
	for _, key := range keys {
		if r.foreign[key] == nil {
			r.foreign[key] = map[types.UID]*corev1.Pod{}
		}
		r.foreign[key][pod.UID] = pod
	}
	return Change{Keys: r.known(keys)}
}

// DeleteForeign forgets a pod that SetForeign recorded.
func (r *Roster) DeleteForeign(pod *corev1.Pod) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := claimsOf(pod, r.readers(pod.Spec.SchedulerName)).keys()
	for _, key := range keys {
		if delete(r.foreign[key], pod.UID); len(r.foreign[key]) == 0 {
			delete(r.foreign, key)
		}
	}
	return Change{Keys: r.known(keys)}
}

// known are those of the gangs that have pods or objects of ours.
func (r *Roster) known(keys []gang.Key) (known []gang.Key) {
	for _, key := range keys {
		if r.gangs[key] != nil {
			known = append(known, key)
		}
	}
	return known
}

// strangers names the first member that is not ours to place; empty for none.
func (r *Roster) strangers(key gang.Key) string {
	var first *corev1.Pod
	for _, pod := range r.foreign[key] {
		if first == nil || compare(pod, first) < 0 {
			first = pod
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf(", %d of another scheduler: pod %s has schedulerName %s", len(r.foreign[key]), first.Name, first.Spec.SchedulerName)
}

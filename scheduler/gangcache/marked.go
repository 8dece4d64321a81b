package gangcache

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Marked returns the gang that a pod says it is a member of, whoever schedules
// it. Which objects exist does not count: a pod of another scheduler is better
// taken for a member too often than not often enough.
func (r *Roster) Marked(pod *corev1.Pod) (key gang.Key, ok bool) {
	r.mu.Lock()
	readers := r.readers(pod.Spec.SchedulerName)
	r.mu.Unlock()
	keys := claimsOf(pod, readers).keys()
	if len(keys) == 0 {
		return gang.Key{}, false
	}
	return keys[0], true
}

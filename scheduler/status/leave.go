package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// overdue is how long after the end of its grace a pod that is being deleted is
// expected to be gone.
const overdue = 10 * time.Second

// current are the members that a phase and its counts are about. One that is being
// deleted counts until it should be gone: a gang that is shut down as usual has its
// status written when its pods are gone, and not before that, too. On a node that
// is dead pods are never gone.
func (c *Controller) current(key gang.Key, members []*corev1.Pod) []*corev1.Pod {
	var current []*corev1.Pod
	var soonest time.Duration
	for _, pod := range members {
		if pod.DeletionTimestamp != nil && !ended(pod) {
			left := pod.DeletionTimestamp.Add(overdue).Sub(c.Clock.Now())
			if left <= 0 {
				continue
			}
			if soonest == 0 || left < soonest {
				soonest = left
			}
		}
		current = append(current, pod)
	}
	if soonest > 0 {
		c.queue.AddAfter(key, soonest)
	}
	return current
}

package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
)

// forming is how long members may say nothing because others are still being created, or told.
const forming = 10 * time.Second

// silence is how many members of a gang say nothing: since when it is as many, and since when there are any.
type silence struct {
	members      int
	since, first time.Time
}

// untold are the members that nobody else will tell: they say nothing yet, and for a while have been as many. While there are
// more of them each moment, a controller is creating the gang, and what would be said is soon wrong; while there are fewer, the
// engine, which has tried the gang, tells one after the other.
func (c *Controller) untold(key gang.Key, members []*corev1.Pod) []*corev1.Pod {
	var untold []*corev1.Pod
	for _, pod := range members {
		if _, said := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); said == nil {
			untold = append(untold, pod)
		}
	}
	if len(untold) == 0 {
		delete(c.silent, key)
		return nil
	}
	now, s := c.Clock.Now(), c.silent[key]
	if s.members == 0 {
		s.first = now
	}
	if s.members != len(untold) {
		s.members, s.since = len(untold), now
		c.silent[key] = s
	}
	if left := min(s.since.Add(patience).Sub(now), s.first.Add(forming).Sub(now)); left > 0 {
		c.queue.AddAfter(key, left)
		return nil
	}
	delete(c.silent, key)
	return untold
}

package aging

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/scheduler/order"
)

// late is how long after its end a pod is still expected to end.
const late = time.Minute

// endOf is when a pod ends at the latest by its own account, as far as that is trusted; zero where it gives none, or has not kept it. A pod that
// has not started is taken to start now, and one that is being deleted ends when its grace does.
func endOf(pod *corev1.Pod, limits order.Limits, now time.Time) time.Time {
	var end time.Time
	if pod.DeletionTimestamp != nil {
		end = pod.DeletionTimestamp.Time
	} else if limit, _, ok := limits.Limit(pod); ok {
		end = startOf(pod, now).Add(limit)
	}
	if now.Sub(end) > late {
		return time.Time{}
	}
	return end
}

// expected is when something happens of which the latest time may be known. What is not known is taken to happen after as long as a gang of unknown
// runtime runs: a time that is known and far away is no better.
func expected(end, now time.Time) time.Time {
	if end.IsZero() {
		return now.Add(order.Neutral)
	}
	return end
}

// hangs reports whether a pod should have gone long ago: it is not to be waited for.
func hangs(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > late
}

func startOf(pod *corev1.Pod, now time.Time) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return now
}

// sortByEnd orders pods by their expected end; of those without a known one, those come first that have run longest.
func (p Projection) sortByEnd(pods []*corev1.Pod, now time.Time) {
	type ending struct {
		pod        *corev1.Pod
		end, start time.Time
	}
	all := make([]ending, 0, len(pods))
	for _, pod := range pods {
		e := ending{pod: pod, end: endOf(pod, p.Limits, now)}
		if e.end.IsZero() {
			e.start = startOf(pod, now)
		}
		e.end = expected(e.end, now)
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b ending) int {
		return cmp.Or(a.end.Compare(b.end), a.start.Compare(b.start), strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
	})
	for i, e := range all {
		pods[i] = e.pod
	}
}

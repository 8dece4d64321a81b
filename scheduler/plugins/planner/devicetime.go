package planner

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	// slowSearch is how long an attempt that failed may have taken before it counts as slow. Most take milliseconds, but users write the
	// claims, and the search for the devices of a few lines may take longer than anybody waits. Nothing else is scheduled meanwhile.
	slowSearch = 50 * time.Millisecond
	// deviceShare bounds the slow attempts of all namespaces together to one part in deviceShare of the time.
	deviceShare = 20
	// attemptLimit is how long one attempt at a gang with claims may take, with memberLimit for each member. Placed one by one, most take a
	// tenth of that.
	attemptLimit = 5 * time.Second
	memberLimit  = 20 * time.Millisecond
	// maxWait is how long a namespace waits at most.
	maxWait = 10 * time.Minute
)

// deviceTime is the time that failed attempts at pods with claims of devices took, by namespace. After a slow one, such pods of the
// namespace are tried again when it has its share of time.
type deviceTime struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	until map[string]time.Time // by namespace: before then none of its pods with claims is tried
}

func newDeviceTime(clock clock.PassiveClock) *deviceTime {
	return &deviceTime{clock: clock, until: map[string]time.Time{}}
}

// spend records how long an attempt took that failed.
func (d *deviceTime) spend(namespace string, took time.Duration) {
	if took < slowSearch {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	for other, until := range d.until {
		if !until.After(now) {
			delete(d.until, other)
		}
	}
	if _, slow := d.until[namespace]; !slow {
		d.until[namespace] = now
	}
	until := d.until[namespace].Add(deviceShare * took * time.Duration(len(d.until)))
	if latest := now.Add(maxWait); until.After(latest) {
		until = latest
	}
	d.until[namespace] = until
}

// wait is how long none of some pods of a namespace is to be tried, 0 if they may be now.
func (d *deviceTime) wait(namespace string, pods ...*corev1.Pod) time.Duration {
	if !slices.ContainsFunc(pods, hasClaims) {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, d.until[namespace].Sub(d.clock.Now()))
}

func hasClaims(pod *corev1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 }

// postponed returns the verdict on a gang that is not tried for a while.
func (c *cycle) postponed(wait time.Duration) *verdict {
	v := &verdict{minCount: 1, postponed: wait, retry: fmt.Sprintf("after %s", wait.Round(time.Second))}
	if policy := c.gang.PodGroup.Spec.SchedulingPolicy.Gang; policy != nil {
		v.minCount = policy.MinCount
	}
	v.reason = &reasons.Reason{
		Finding: answer.Finding{
			Code: answer.SearchIncomplete, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody,
			Message: "the search for devices by the resource claims of this namespace took too long, and is not repeated at once",
		},
		Required: v.minCount, Retry: v.retry,
	}
	return v
}

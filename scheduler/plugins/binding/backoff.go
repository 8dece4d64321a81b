package binding

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// minBackoff follows the second failure of a member's binding; each further one
	// doubles it, up to maxBackoff. The first failure has no backoff: most are
	// transient.
	minBackoff = time.Second
	maxBackoff = 10 * time.Second
	// failureTTL is how long a failure is remembered.
	failureTTL = 10 * time.Minute
)

// backoff keeps a gang from being tried again as fast as the API server can refuse to
// bind its members. The engine has no backoff for them.
type backoff struct {
	clock clock.WithDelayedExecution
	// exists reports whether a pod exists and is not being deleted.
	exists func(pod *corev1.Pod) bool
	// over is called when a gang may be tried again; pod is the member that failed.
	over func(group types.NamespacedName, pod *corev1.Pod)

	mu       sync.Mutex
	failures map[types.UID]failure
	delays   map[types.NamespacedName]delay
}

type failure struct {
	times int
	last  time.Time
}

// delay is until when a gang is not tried, and the member that failed.
type delay struct {
	until time.Time
	pod   *corev1.Pod
}

func newBackoff(clock clock.WithDelayedExecution, exists func(*corev1.Pod) bool, over func(types.NamespacedName, *corev1.Pod)) *backoff {
	return &backoff{
		clock: clock, exists: exists, over: over,
		failures: map[types.UID]failure{}, delays: map[types.NamespacedName]delay{},
	}
}

// fail records that a member that had a node was not bound.
func (b *backoff) fail(group types.NamespacedName, pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for uid, f := range b.failures {
		if now.Sub(f.last) > failureTTL {
			delete(b.failures, uid)
		}
	}
	f := failure{times: b.failures[pod.UID].times + 1, last: now}
	b.failures[pod.UID] = f
	if f.times == 1 {
		return
	}
	wait := min(minBackoff<<min(f.times-2, 10), maxBackoff)
	until := now.Add(wait)
	if !until.After(b.delays[group].until) {
		return
	}
	b.delays[group] = delay{until: until, pod: pod}
	b.clock.AfterFunc(wait, func() { b.end(group, until, pod) })
}

// end ends a delay that was not prolonged meanwhile. It may be over because the member is gone: others that were refused before that still wait for its end.
func (b *backoff) end(group types.NamespacedName, until time.Time, pod *corev1.Pod) {
	b.mu.Lock()
	d, delayed := b.delays[group]
	prolonged := delayed && !d.until.Equal(until)
	if !prolonged {
		delete(b.delays, group)
	}
	b.mu.Unlock()
	if !prolonged {
		b.over(group, pod)
	}
}

// succeed records that a member is bound.
func (b *backoff) succeed(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, uid)
}

// active reports whether a gang is not to be tried for now. A delay ends with the
// member that failed: another gang of its name may have come.
func (b *backoff) active(group types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, active := b.delays[group]
	if active && !b.exists(d.pod) {
		delete(b.delays, group)
		return false
	}
	return active
}

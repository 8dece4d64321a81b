package binding

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// firstBackoff is how long a member waits whose binding failed twice; each
	// further failure doubles that, up to longestBackoff. The first failure costs
	// nothing: most are of the moment.
	firstBackoff   = time.Second
	longestBackoff = 10 * time.Second
	// memory is how long a failure is remembered.
	memory = 10 * time.Minute
)

// backoff keeps a gang from being tried again and again as fast as an API server
// can refuse to bind its members: the engine has no such thing for them.
type backoff struct {
	clock clock.WithDelayedExecution
	// over is called when a gang may be tried again; pod is the member.
	over func(group types.NamespacedName, pod *corev1.Pod)
	// exists tells whether a pod is still there, and is to stay.
	exists func(pod *corev1.Pod) bool

	mu     sync.Mutex
	failed map[types.UID]failure
	rests  map[types.NamespacedName]rest
}

// rest is until when a gang is left alone, and the member on whose account.
type rest struct {
	until time.Time
	pod   *corev1.Pod
}

type failure struct {
	times int
	last  time.Time
}

func newBackoff(clock clock.WithDelayedExecution, over func(types.NamespacedName, *corev1.Pod)) *backoff {
	return &backoff{
		clock: clock, over: over, exists: func(*corev1.Pod) bool { return true },
		failed: map[types.UID]failure{}, rests: map[types.NamespacedName]rest{},
	}
}

// fail notes that a member was decided on and could not be bound.
func (b *backoff) fail(group types.NamespacedName, pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for uid, f := range b.failed {
		if now.Sub(f.last) > memory {
			delete(b.failed, uid)
		}
	}
	f := failure{times: b.failed[pod.UID].times + 1, last: now}
	b.failed[pod.UID] = f
	if f.times == 1 {
		return
	}
	wait := min(firstBackoff<<min(f.times-2, 10), longestBackoff)
	until := now.Add(wait)
	if !until.After(b.rests[group].until) {
		return
	}
	b.rests[group] = rest{until: until, pod: pod}
	b.clock.AfterFunc(wait, func() { b.end(group, until, pod) })
}

// end ends a backoff that was not made longer meanwhile.
func (b *backoff) end(group types.NamespacedName, until time.Time, pod *corev1.Pod) {
	b.mu.Lock()
	current := b.rests[group].until.Equal(until)
	if current {
		delete(b.rests, group)
	}
	b.mu.Unlock()
	if current {
		b.over(group, pod)
	}
}

// succeed notes that a member is bound.
func (b *backoff) succeed(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failed, uid)
}

// waits tells whether a gang is to be left alone for now. It is not any more if
// the member is gone: another gang of its name may have come.
func (b *backoff) waits(group types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, waits := b.rests[group]
	if waits && !b.exists(r.pod) {
		delete(b.rests, group)
		return false
	}
	return waits
}

package planner

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Queue is the engine's queue; *engine.Handle leads to it.
type Queue interface {
	// Activate moves pods to its front; the keys are NAMESPACE/NAME.
	Activate(pods map[string]*corev1.Pod)
}

// Attempts are what is known of the engine's attempts at gangs: the one under way, and those that failed. It exists before the
// planner, because those who make claims wake gangs, and the planner reads claims.
type Attempts struct {
	queue Queue
	clock clock.WithDelayedExecution
	count attemptCounters

	mu    sync.Mutex
	now   *cycle    // the gang that is being scheduled; nil between gangs
	begun time.Time // when the engine last began with one
	memos map[types.NamespacedName]*memo
	leads map[types.NamespacedName]types.UID // members that have to come first in the next attempt
}

// NewAttempts returns attempts of which none has failed.
func NewAttempts(queue Queue, clock clock.WithDelayedExecution) *Attempts {
	return &Attempts{
		queue: queue, clock: clock, count: newAttemptCounters(),
		memos: map[types.NamespacedName]*memo{}, leads: map[types.NamespacedName]types.UID{},
	}
}

// Busy reports whether the engine has begun with some gang within the last second: what it has not come to may be next.
func (a *Attempts) Busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now != nil || a.clock.Since(a.begun) < time.Second
}

// Released reports that less is kept from gangs than before: those that waited for it are tried again.
func (a *Attempts) Released() {
	a.mu.Lock()
	var woken []*memo
	for group, m := range a.memos {
		if m.claimed || !m.proven {
			woken = append(woken, a.help(group, m, causeClaim)...)
		}
	}
	if a.now != nil {
		a.now.news = true
	}
	a.mu.Unlock()
	a.wake(woken...)
}

// Wake has a gang tried again at once if it is parked.
func (a *Attempts) Wake(group types.NamespacedName) {
	a.mu.Lock()
	if a.now != nil && a.now.group == group {
		a.now.changed = true
	}
	m, parked := a.memos[group]
	if parked {
		m.cause = causeGang
		a.drop(group)
	}
	a.mu.Unlock()
	if parked {
		a.wake(m)
	}
}

// memo keeps a gang from being tried without a chance. The engine would try it after some seconds, again and again, whatever happened
// meanwhile, and each time simulate every member on every node, to find the same; and when something happened that helps, it
// would let the gang sit out its backoff, which for a gang of 100 is more than a minute.
type memo struct {
	// member is one of the gang's pods, by which the engine's queue finds it.
	member *corev1.Pod
	// proven: the gang had no placement. Only what frees room or brings nodes can change that. Otherwise all that is known is
	// that the engine did not place it, and any event may help.
	proven bool
	// claimed: it might have had one, were it not for what is kept from it.
	claimed bool
	// lacks are amounts without which the gang cannot start wherever they come free. If there are any, nothing else helps.
	lacks map[corev1.ResourceName]int64
	// short is set of a gang that stands in parts and cannot be completed now.
	short *Shortfall

	timer clock.Timer
	// rested is when the cluster's changes may have it tried again, cause which of them will.
	rested time.Time
	cause  string
}

const (
	// parkedAtMost is how long a gang waits though nothing happened that could help it. As for the engine's own unschedulable
	// pods, this covers what brings no event.
	parkedAtMost = 5 * time.Minute
	// rest is how long a gang is left alone after an attempt in which it was not placed, however much happens.
	rest = time.Second
)

// The values of the label cause of gangctl_scheduler_woken_gangs_total.
const (
	causeCluster = "cluster"
	causeGang    = "gang"
	causeClaim   = "claim"
	causeTime    = "time"
)

// park keeps a gang from being tried, for a while at most. The lock must be held.
func (a *Attempts) park(group types.NamespacedName, m *memo, atMost time.Duration) {
	a.drop(group)
	m.cause, m.rested = causeTime, a.clock.Now().Add(rest)
	a.memos[group] = m
	a.count.parked.Set(float64(len(a.memos)))
	a.rouse(group, m, atMost)
}

// rouse has a parked gang tried again after some time. The lock must be held.
func (a *Attempts) rouse(group types.NamespacedName, m *memo, after time.Duration) {
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer = a.clock.AfterFunc(after, func() { a.expire(group, m) })
}

// drop forgets that a gang is parked. The lock must be held.
func (a *Attempts) drop(group types.NamespacedName) {
	if m, parked := a.memos[group]; parked {
		m.timer.Stop()
		a.forget(group)
	}
}

func (a *Attempts) forget(group types.NamespacedName) {
	delete(a.memos, group)
	a.count.parked.Set(float64(len(a.memos)))
}

func (a *Attempts) expire(group types.NamespacedName, m *memo) {
	a.mu.Lock()
	current := a.memos[group] == m
	if current {
		a.forget(group)
	}
	a.mu.Unlock()
	if current {
		a.wake(m)
	}
}

// help has a parked gang tried again as soon as it has rested: it returns the memo, no longer in force, if that is now. The lock
// must be held.
func (a *Attempts) help(group types.NamespacedName, m *memo, cause string) []*memo {
	if m.cause != causeTime {
		return nil // it will be, already
	}
	m.cause = cause
	if left := m.rested.Sub(a.clock.Now()); left > 0 {
		a.rouse(group, m, left)
		return nil
	}
	a.drop(group)
	return []*memo{m}
}

// parked reports whether a gang is not to be tried now.
func (a *Attempts) parked(group types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, parked := a.memos[group]
	return parked
}

// wake moves gangs to the front of the engine's queue. The lock must not be held: the queue calls back whether they are parked.
func (a *Attempts) wake(memos ...*memo) {
	if len(memos) == 0 {
		return
	}
	pods := make(map[string]*corev1.Pod, len(memos))
	for _, m := range memos {
		a.count.woken.WithLabelValues(m.cause).Inc()
		pods[m.member.Namespace+"/"+m.member.Name] = m.member
	}
	a.queue.Activate(pods)
}

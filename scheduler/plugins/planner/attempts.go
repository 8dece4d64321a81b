package planner

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// Queue is the engine's queue; *engine.Handle leads to it.
type Queue interface {
	// Activate moves pods to its front; the keys are NAMESPACE/NAME.
	Activate(pods map[string]*corev1.Pod)
}

// Attempts holds the state of the engine's attempts at gangs: the one under way, and those that failed. It exists before the
// planner, because the plugins that make claims wake gangs, and the planner reads claims.
type Attempts struct {
	queue Queue
	clock clock.WithDelayedExecution
	count attemptCounters
	// devices is the time that failed attempts at pods with claims of devices took.
	devices *searchTime
	slow    *slowGangs

	mu           sync.Mutex
	current      *cycle    // the gang that is being scheduled; nil between gangs
	lastBegun    time.Time // when the engine last began with one
	parkedGangs  map[types.NamespacedName]*parkedGang
	waiting      *waiting                           // those that no event has helped yet: their cause is causeTime
	firstMembers map[types.NamespacedName]types.UID // members that have to come first in the next attempt
	selfChanged  map[types.NamespacedName]bool      // gangs whose next attempt is due to a change of their own
}

// NewAttempts returns attempts of which none has failed.
func NewAttempts(queue Queue, clock clock.WithDelayedExecution) *Attempts {
	return &Attempts{
		queue: queue, clock: clock, count: newAttemptCounters(), devices: newSearchTime(clock, deviceShare), slow: newSlowGangs(clock),
		parkedGangs: map[types.NamespacedName]*parkedGang{}, waiting: newWaiting(), firstMembers: map[types.NamespacedName]types.UID{},
		selfChanged: map[types.NamespacedName]bool{},
	}
}

// Busy reports whether the engine is at a gang, or has been within the last second: those in its queue may be next.
func (a *Attempts) Busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current != nil || a.clock.Since(a.lastBegun) < time.Second
}

// Released notifies the planner that claims have ended. Gangs that they may have kept out are tried again.
func (a *Attempts) Released() {
	a.mu.Lock()
	woken := a.requeueAll(a.waiting.claimed.list(), causeClaim)
	if a.current != nil { // if nothing is proven of it, it may have waited for a claim
		a.current.roomFreed, a.current.clusterChanged = true, true
	}
	a.mu.Unlock()
	a.wake(woken...)
}

// Wake has the engine try a parked gang again at once.
func (a *Attempts) Wake(group types.NamespacedName) {
	a.mu.Lock()
	if a.current != nil && a.current.group == group {
		a.current.gangChanged = true
	}
	m, parked := a.parkedGangs[group]
	if parked {
		m.cause = causeGang
		a.unpark(group)
	}
	a.mu.Unlock()
	if parked {
		a.wake(m)
	}
}

// Changed has the engine try a gang again that has itself changed: at once if it is parked, unless its last attempt was due to such a change, too. Who changes
// a gang without a pause would have nothing else tried.
func (a *Attempts) Changed(group types.NamespacedName) {
	a.mu.Lock()
	if a.current != nil && a.current.group == group {
		a.current.changes()
	}
	var woken []*parkedGang
	if m := a.parkedGangs[group]; m != nil {
		m.gone = false
	}
	if m := a.parkedGangs[group]; m != nil && m.changed && a.clock.Now().Before(m.notBefore) {
		woken = a.requeue(m, causeGang)
	} else if m != nil {
		m.cause, a.selfChanged[group] = causeGang, true
		a.unpark(group)
		woken = append(woken, m)
	}
	a.mu.Unlock()
	a.wake(woken...)
}

// forgetNext drops what is kept for the next attempt of a gang that is gone. It stays parked, for one of its name that comes soon.
func (a *Attempts) forgetNext(group types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.parkedGangs[group]; m != nil {
		m.gone = true
	}
	if a.current != nil && a.current.group == group {
		a.current.gone = true
	}
	delete(a.firstMembers, group)
	delete(a.selfChanged, group)
}

// Retry has the engine try a pod again at once, with its gang if it is a member.
func (a *Attempts) Retry(pod *corev1.Pod) {
	if group, member := engine.GroupOf(pod); member {
		a.Wake(group)
		return
	}
	a.queue.Activate(map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
}

// parkedGang is a gang that failed and is not tried again until an event may help it. Without that the engine would try it every few
// seconds, whatever happened, and simulate every member on every node each time. After an event that helps, it would first let the
// gang sit out its backoff, which for a gang of 100 is more than a minute.
type parkedGang struct {
	group types.NamespacedName
	// member is one of the gang's pods, by which the engine's queue finds it.
	member *corev1.Pod
	// proven: the gang had no placement. Only freed resources or new nodes can change that. Otherwise the engine did not place
	// it, for a reason unknown here, and any event may help.
	proven bool
	// claimed: it might have had a placement without the claims of others.
	claimed bool
	// lacks are the amounts that all nodes together are short of. If there are any, no other event helps.
	lacks map[corev1.ResourceName]int64
	// wants are the members without a place, unless it lacks amounts; nil where any room may help.
	wants *wants
	// missing is how many of the amounts, or of the places, it lacks still.
	missing int
	// short is set if the gang is partly placed and cannot be completed now.
	short *Shortfall
	// changed: the attempt that failed was due to a change of the gang itself. gone: its group has been deleted since, and nothing is kept for a next attempt.
	changed, gone bool

	timer clock.Timer
	// notBefore is the earliest time of the next attempt, cause what will start it.
	notBefore time.Time
	cause     string
}

const (
	// maxParked is how long a gang is parked without an event that may help it. Like the engine's flush of unschedulable pods, it
	// covers changes that bring no event.
	maxParked = 5 * time.Minute
	// victimsRetry is how long a gang is parked whose victims are unknown. The next search may come further; while it runs, no other pod is scheduled.
	victimsRetry = time.Minute
	// minParked is how long a gang is parked at least, however many events there are.
	minParked = time.Second
)

// retriesWithRoom is when a gang is tried again that has no placement now.
func retriesWithRoom(atMost time.Duration) string {
	return fmt.Sprintf("when nodes or room come free, at the latest after %s", atMost)
}

// The values of the label cause of gangctl_scheduler_woken_gangs_total.
const (
	causeCluster = "cluster"
	causeGang    = "gang"
	causeClaim   = "claim"
	causeTime    = "time"
)

// park keeps a gang from being tried until an event helps it, or for atMost. The lock must be held.
func (a *Attempts) park(group types.NamespacedName, m *parkedGang, atMost time.Duration) {
	a.unpark(group)
	m.group, m.cause, m.notBefore = group, causeTime, a.clock.Now().Add(minParked)
	a.parkedGangs[group] = m
	a.waiting.add(m)
	a.count.parked.Set(float64(len(a.parkedGangs)))
	a.wakeAfter(group, m, atMost)
}

// wakeAfter sets the time after which a parked gang is tried again. The lock must be held.
func (a *Attempts) wakeAfter(group types.NamespacedName, m *parkedGang, after time.Duration) {
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer = a.clock.AfterFunc(after, func() { a.expire(group, m) })
}

// unpark removes a gang from the parked ones, without waking it. The lock must be held.
func (a *Attempts) unpark(group types.NamespacedName) {
	if m, parked := a.parkedGangs[group]; parked {
		m.timer.Stop()
		a.forget(group)
	}
}

func (a *Attempts) forget(group types.NamespacedName) {
	if m := a.parkedGangs[group]; m != nil {
		a.waiting.remove(m)
	}
	delete(a.parkedGangs, group)
	a.count.parked.Set(float64(len(a.parkedGangs)))
}

func (a *Attempts) expire(group types.NamespacedName, m *parkedGang) {
	a.mu.Lock()
	current := a.parkedGangs[group] == m
	if current {
		a.forget(group)
		if m.cause == causeGang && !m.gone {
			a.selfChanged[group] = true
		}
	}
	a.mu.Unlock()
	if current {
		a.wake(m)
	}
}

// requeue has a parked gang tried again as soon as its minimum time is over. It returns the gang, unparked, if that is now. The lock must
// be held.
func (a *Attempts) requeue(m *parkedGang, cause string) []*parkedGang {
	if m.cause != causeTime {
		return nil // it is already to be tried
	}
	m.cause = cause
	a.waiting.remove(m)
	if left := m.notBefore.Sub(a.clock.Now()); left > 0 {
		a.wakeAfter(m.group, m, left)
		return nil
	}
	a.unpark(m.group)
	return []*parkedGang{m}
}

// requeueAll is requeue for several gangs. The lock must be held.
func (a *Attempts) requeueAll(gangs []*parkedGang, cause string) (woken []*parkedGang) {
	for _, m := range gangs {
		woken = append(woken, a.requeue(m, cause)...)
	}
	return woken
}

// isParked reports whether a gang is parked.
func (a *Attempts) isParked(group types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, parked := a.parkedGangs[group]
	return parked
}

// activateAfter has the engine try a pod on its own again after a while: no event does.
func (a *Attempts) activateAfter(pod *corev1.Pod, wait time.Duration) {
	a.clock.AfterFunc(wait, func() { a.queue.Activate(map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod}) })
}

// wake moves gangs to the front of the engine's queue. The lock must not be held: the queue calls PreEnqueue, which takes it.
func (a *Attempts) wake(gangs ...*parkedGang) {
	if len(gangs) == 0 {
		return
	}
	pods := make(map[string]*corev1.Pod, len(gangs))
	for _, m := range gangs {
		a.count.woken.WithLabelValues(m.cause).Inc()
		pods[m.member.Namespace+"/"+m.member.Name] = m.member
	}
	a.queue.Activate(pods)
}

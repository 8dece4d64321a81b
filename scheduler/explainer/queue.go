package explainer

import (
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// firstRetry and lastRetry bound the time to the next try of a gang whose answer could not be made or written; it doubles.
	firstRetry = 15 * time.Second
	lastRetry  = 10 * time.Minute
)

// queue holds the gangs to explain. Each has a time from which it is due: changes of one gang are gathered, and a gang that fails again
// and again is tried less often, whatever happens to it meanwhile.
type queue struct {
	clock   clock.Clock
	retries workqueue.TypedRateLimiter[gang.Key]
	wake    chan struct{}

	mu      sync.Mutex
	entries map[gang.Key]*queued
	order   dueOrder
	next    time.Time // when the first was due, as of the last wait; zero for none
}

// entry is one gang in the queue: since when it is, when something last happened to it, and when it is due. One for advice has an answer,
// and comes after those that have none.
type entry struct {
	key                 gang.Key
	since, touched, due time.Time
	advice              bool
}

// queued is an entry, and where it is in the order.
type queued struct {
	entry
	at int
}

// dueOrder are the gangs of a queue as a heap, the one that is due first in front: each that is due is taken by itself, and there may be thousands that are not.
type dueOrder []*queued

func (o dueOrder) Len() int           { return len(o) }
func (o dueOrder) Less(i, j int) bool { return o[i].due.Before(o[j].due) }

func (o dueOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

func (o *dueOrder) Push(x any) {
	e := x.(*queued)
	e.at = len(*o)
	*o = append(*o, e)
}

func (o *dueOrder) Pop() any {
	last := len(*o) - 1
	e := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return e
}

func newQueue(clock clock.Clock) *queue {
	return &queue{
		clock: clock, entries: map[gang.Key]*queued{}, wake: make(chan struct{}, 1),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[gang.Key](firstRetry, lastRetry),
	}
}

// add adds a gang that is due after a while. One that is in the queue already keeps its time, unless it is there for advice.
func (q *queue) add(key gang.Key, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	if e, known := q.entries[key]; known && !e.advice {
		e.touched = now
		return
	}
	q.put(entry{key: key, since: now, touched: now, due: now.Add(after)})
}

// addStale adds a gang whose answer is old, and to which nothing happened. One that is in the queue already stays as it is, unless it is there
// for advice.
func (q *queue) addStale(key gang.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e, known := q.entries[key]; known && !e.advice {
		return
	}
	now := q.clock.Now()
	q.put(entry{key: key, since: now, touched: now, due: now})
}

// addAdvice adds a gang for which advice is to be searched for, unless it is in the queue already. A look at the cluster since then is
// good enough for it.
func (q *queue) addAdvice(key gang.Key, since time.Time, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.entries[key]; !known {
		q.put(entry{key: key, since: since, touched: since, due: q.clock.Now().Add(after), advice: true})
	}
}

// put wakes whoever waits, if the gang is due before the others: as gangs are placed there are many that are not.
func (q *queue) put(e entry) {
	q.set(e)
	if !q.next.IsZero() && !e.due.Before(q.next) {
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// set adds a gang, or has it due at another time.
func (q *queue) set(e entry) {
	if known := q.entries[e.key]; known != nil {
		known.entry = e
		heap.Fix(&q.order, known.at)
		return
	}
	added := &queued{entry: e}
	q.entries[e.key] = added
	heap.Push(&q.order, added)
}

// failed adds a gang whose answer failed, and is due after longer each time.
func (q *queue) failed(key gang.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now() // a change meanwhile does not bring the next try forward
	q.put(entry{key: key, since: now, touched: now, due: now.Add(q.retries.When(key))})
}

// succeeded forgets the failures of a gang.
func (q *queue) succeeded(key gang.Key) {
	q.retries.Forget(key)
}

// len is how many gangs there are.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// wait is how long it takes until a gang is due; ok is false without any. One goroutine waits.
func (q *queue) wait() (d time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = time.Time{}
	if len(q.order) == 0 {
		return 0, false
	}
	q.next = q.order[0].due
	return max(0, q.next.Sub(q.clock.Now())), true
}

// take removes and returns the gangs that are due, those that are so for longest first.
func (q *queue) take() []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	var due []entry
	for len(q.order) > 0 && !q.order[0].due.After(now) {
		e := heap.Pop(&q.order).(*queued).entry
		due = append(due, e)
		delete(q.entries, e.key)
	}
	slices.SortFunc(due, func(a, b entry) int {
		if c := a.since.Compare(b.since); c != 0 {
			return c
		}
		return strings.Compare(a.key.String(), b.key.String())
	})
	return due
}

// putBack returns a gang that was taken and is due after a while. It keeps its place among those that wait.
func (q *queue) putBack(e entry, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if again, known := q.entries[e.key]; known { // something has happened to it since it was taken
		e.touched, e.advice = again.touched, false
	}
	e.due = q.clock.Now().Add(after)
	q.set(e)
}

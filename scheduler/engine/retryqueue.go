package engine

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	// minRetryDelay follows the first failure; each further one doubles it.
	minRetryDelay = 50 * time.Millisecond
	// maxRetryDelay bounds it: after an outage of the API server, however long, what
	// is to be written is written within that time.
	maxRetryDelay = 5 * time.Second
)

// NewRetryQueue returns a work queue for the controllers alongside the engine. An
// item that failed is tried again after 50 ms to 5 s. Each item has a backoff of
// its own, so many that fail at once do not delay each other. The namespaces take
// turns: however many items of one namespace wait, and however long each takes,
// that of another is the next but one.
func NewRetryQueue[T comparable](namespaceOf func(T) string) *RetryQueue[T] {
	inTurn := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Queue: &turns[T]{namespaceOf: namespaceOf, items: map[string][]T{}}})
	return &RetryQueue[T]{touched: map[T]bool{}, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(retryLimiter[T](), workqueue.TypedRateLimitingQueueConfig[T]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{Queue: inTurn}),
	})}
}

// RetryQueue is the work queue that [NewRetryQueue] returns.
type RetryQueue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	mu      sync.Mutex
	touched map[T]bool // since they were taken
}

// Touch adds an item after a while, unless it is about to be added because of an earlier touch: an item may be touched at each event of a thousand pods, and
// each addition wakes the goroutine that adds.
func (q *RetryQueue[T]) Touch(item T, after time.Duration) {
	q.mu.Lock()
	again := q.touched[item]
	q.touched[item] = true
	q.mu.Unlock()
	if !again {
		q.AddAfter(item, after)
	}
}

// Get implements workqueue.TypedInterface.
func (q *RetryQueue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.TypedRateLimitingInterface.Get()
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.touched, item)
	return item, shutdown
}

func retryLimiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](minRetryDelay, maxRetryDelay)
}

// turns are the items of a work queue, in which the namespaces take turns. The work queue has the lock.
type turns[T comparable] struct {
	namespaceOf func(T) string
	order       []string // the namespaces that have items, the next first
	items       map[string][]T
	count       int
}

// Touch implements workqueue.Queue.
func (q *turns[T]) Touch(T) {}

// Push implements workqueue.Queue.
func (q *turns[T]) Push(item T) {
	namespace := q.namespaceOf(item)
	if len(q.items[namespace]) == 0 {
		q.order = append(q.order, namespace)
	}
	q.items[namespace] = append(q.items[namespace], item)
	q.count++
}

// Len implements workqueue.Queue.
func (q *turns[T]) Len() int { return q.count }

// Pop implements workqueue.Queue.
func (q *turns[T]) Pop() T {
	namespace := q.order[0]
	q.order = q.order[1:]
	items := q.items[namespace]
	if len(items) == 1 {
		delete(q.items, namespace)
	} else {
		q.order, q.items[namespace] = append(q.order, namespace), items[1:]
	}
	q.count--
	return items[0]
}

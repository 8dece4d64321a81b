// Package retry says how soon what failed is tried again, in the queues beside
// the engine.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	// soonest is after the first failure; each further one doubles it.
	soonest = 50 * time.Millisecond
	// latest bounds it: after an outage of the API server, however long, what is to
	// be written is written within that time.
	latest = 5 * time.Second
)

// Queue returns a queue whose items are tried again after 50 ms to 5 s, each by
// itself: many that fail at once do not put each other off.
func Queue[T comparable]() workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueue(limiter[T]())
}

func limiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](soonest, latest)
}

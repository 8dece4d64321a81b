package engine

import (
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
// its own, so many that fail at once do not delay each other.
func NewRetryQueue[T comparable]() workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueue(retryLimiter[T]())
}

func retryLimiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](minRetryDelay, maxRetryDelay)
}

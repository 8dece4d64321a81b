package record

import (
	"context"
	"errors"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	// tries is how often an event is sent to an API server that does not answer,
	// with pauses that double from pause on: for about a minute.
	tries = 7
	pause = time.Second
	// answer is how long the API server is waited for.
	answer = 10 * time.Second
	// last is for how long events are written after the end.
	last = 2 * time.Second
)

// work writes the events of a queue, one after another.
func (r *Recorder) work(ctx context.Context, queue <-chan *eventsv1.Event) {
	for {
		select {
		case event := <-queue:
			if !r.write(ctx, event) {
				r.flush(ctx, event, queue)
				return
			}
		case <-ctx.Done():
			r.flush(ctx, nil, queue)
			return
		}
	}
}

// write writes an event, or gives up on it; done is false if ctx ended before
// either.
func (r *Recorder) write(ctx context.Context, event *eventsv1.Event) (done bool) {
	logger := klog.FromContext(ctx)
	for try := 1; ; try++ {
		err := r.create(ctx, event, try)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case !transient(err) || try == tries:
			dropped(logger, event, err)
			return true
		}
		timer := r.clock.NewTimer(pause << (try - 1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C():
		}
	}
}

// create sends an event once. One that is there already was sent before, and only
// the answer was lost.
func (r *Recorder) create(ctx context.Context, event *eventsv1.Event, try int) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	_, err := r.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if try > 1 && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// transient tells an error after which the same may succeed: there was no answer,
// or one that says so.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}

// flush writes what waits when the scheduler ends, each once.
func (r *Recorder) flush(ctx context.Context, first *eventsv1.Event, queue <-chan *eventsv1.Event) {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	if first != nil {
		if err := r.create(ctx, first, tries); err != nil {
			dropped(logger, first, err)
		}
	}
	for {
		select {
		case event := <-queue:
			if err := r.create(ctx, event, 1); err != nil {
				dropped(logger, event, err)
			}
		default:
			return
		}
	}
}

// Package reconnect has watches find an API server soon after it was away.
//
// An informer whose watch finds no server waits before it tries again, twice as
// long every time, up to a minute: after an outage of a minute a scheduler would
// be blind for another one. So a watch that finds nobody does not fail here. It
// goes on asking, at a pace that a server which has just come back can bear, until
// somebody answers or nobody wants to know any more. What a server answers, an
// error included, is passed on, and informers deal with it as they always do.
package reconnect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// pause is how long a watch waits before it looks for the server again, and half
// as long again at most, so that not all come at once.
const pause = time.Second

// Waiter has watches wait for their server. It is safe for concurrent use.
type Waiter struct {
	clock clock.Clock

	mu   sync.Mutex
	away time.Time // since when the server is; zero while it is not
}

// New returns a waiter.
func New(c clock.Clock) *Waiter { return &Waiter{clock: c} }

// Wrap has the watches among the requests that a transport makes wait; it is a
// transport.WrapperFunc, for rest.Config.Wrap.
func (w *Waiter) Wrap(next http.RoundTripper) http.RoundTripper { return &patient{next, w} }

type patient struct {
	next   http.RoundTripper
	waiter *Waiter
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (p *patient) WrappedRoundTripper() http.RoundTripper { return p.next }

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if !watches(r) {
		return p.next.RoundTrip(r)
	}
	ctx := r.Context()
	for {
		response, err := p.next.RoundTrip(r)
		if err == nil {
			p.waiter.found(ctx)
			return response, nil
		}
		if ctx.Err() != nil || !unreachable(err) {
			return nil, err
		}
		p.waiter.lost(ctx, err)
		select {
		case <-p.waiter.clock.After(wait.Jitter(pause, 0.5)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// watches tells a watch. It has no body, so it can be sent again.
func watches(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// unreachable tells an error that says that no server has answered from one that
// says, say, that its certificate is another's.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// lost notes that the server does not answer, and says so once.
func (w *Waiter) lost(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away.IsZero() {
		w.away = w.clock.Now()
		klog.FromContext(ctx).Info("The API server cannot be reached; watches look for it every second", "err", err)
	}
}

// found notes that it answers.
func (w *Waiter) found(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.away.IsZero() {
		klog.FromContext(ctx).Info("The API server is reached again", "after", w.clock.Since(w.away).Round(100*time.Millisecond))
		w.away = time.Time{}
	}
}

package engine

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

// reconnectPause is how long a watch waits before it tries to connect again, plus
// up to half as long, so that not all watches come at once.
const reconnectPause = time.Second

// Reconnector has watches connect again soon after an outage of the API server.
//
// An informer whose watch cannot connect backs off exponentially, up to a minute:
// after an outage of a minute a scheduler would be blind for another one. So a
// watch that cannot connect does not fail here. It tries again, at a pace that a
// server which has just come back can bear, until there is a response or the
// request is cancelled. Any response, an error included, is passed on to the
// informer. It is safe for concurrent use.
type Reconnector struct {
	clock clock.Clock

	mu   sync.Mutex
	lost time.Time // since when the server does not answer; zero while it does
}

// NewReconnector returns a reconnector.
func NewReconnector(c clock.Clock) *Reconnector { return &Reconnector{clock: c} }

// Wrap returns a transport whose watches reconnect. It is a
// transport.WrapperFunc, for rest.Config.Wrap.
func (r *Reconnector) Wrap(next http.RoundTripper) http.RoundTripper {
	return &reconnectingTransport{next, r}
}

type reconnectingTransport struct {
	next        http.RoundTripper
	reconnector *Reconnector
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t *reconnectingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *reconnectingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isWatch(r) {
		return t.next.RoundTrip(r)
	}
	ctx := r.Context()
	for {
		response, err := t.next.RoundTrip(r)
		if err == nil {
			t.reconnector.connected(ctx)
			return response, nil
		}
		if ctx.Err() != nil || !unreachable(err) {
			return nil, err
		}
		t.reconnector.disconnected(ctx, err)
		select {
		case <-t.reconnector.clock.After(wait.Jitter(reconnectPause, 0.5)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// isWatch reports whether a request is a watch. A watch has no body, so it can be
// sent again.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// unreachable reports whether an error means that no server answered. An error of
// TLS, for example, does not.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// disconnected records that the server does not answer, and logs it once.
func (r *Reconnector) disconnected(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.IsZero() {
		r.lost = r.clock.Now()
		klog.FromContext(ctx).Info("The API server cannot be reached; watches try again every second", "err", err)
	}
}

// connected records that the server answers.
func (r *Reconnector) connected(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lost.IsZero() {
		klog.FromContext(ctx).Info("The API server is reached again", "after", r.clock.Since(r.lost).Round(100*time.Millisecond))
		r.lost = time.Time{}
	}
}

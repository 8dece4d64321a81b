package kube

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// oneLogin sends requests one after the other until the program that gets credentials has got some: client-go runs it once for each request that
// waits for it, and each run of one that fails may open a browser, or count towards a lock. Those that wait for a login that fails, fail too.
type oneLogin struct {
	base  http.RoundTripper
	turn  chan struct{} // held by the request that logs in
	known atomic.Bool   // the last request had credentials
	// failures counts logins that failed, failed is the last one. failed is only used by who has the turn.
	failures atomic.Int64
	failed   error
}

func newOneLogin(base http.RoundTripper) *oneLogin {
	return &oneLogin{base: base, turn: make(chan struct{}, 1)}
}

// RoundTrip implements http.RoundTripper.
func (l *oneLogin) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.known.Load() {
		return l.send(r)
	}
	before := l.failures.Load()
	select {
	case l.turn <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if l.known.Load() { // another has logged in meanwhile
		<-l.turn
		return l.send(r)
	}
	defer func() { <-l.turn }()
	if l.failures.Load() != before {
		return nil, l.failed
	}
	response, err := l.send(r)
	if err != nil && !l.known.Load() {
		l.failed = err
		l.failures.Add(1)
	}
	return response, err
}

// send sends a request and takes note of whether it had credentials.
func (l *oneLogin) send(r *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(r)
	l.known.Store(err == nil || !strings.HasPrefix(err.Error(), "getting credentials: "))
	return response, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper, for who closes idle connections.
func (l *oneLogin) WrappedRoundTripper() http.RoundTripper { return l.base }

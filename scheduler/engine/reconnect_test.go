package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

var errRefused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// flakyServer answers with these errors, one after another, and then with itself.
type flakyServer struct {
	errs     []error
	requests int
}

func (s *flakyServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.requests++
	if s.requests <= len(s.errs) {
		return nil, s.errs[s.requests-1]
	}
	return &http.Response{StatusCode: http.StatusGone, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// roundTrip sends a request, and steps the clock while it waits.
func roundTrip(ctx context.Context, t *testing.T, s *flakyServer, method, url string) (seconds int, response *http.Response, err error) {
	t.Helper()
	fake := clocktesting.NewFakeClock(time.Now())
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err = NewReconnector(fake).Wrap(s).RoundTrip(r) //nolint:bodyclose // the caller's
	}()
	for {
		select {
		case <-done:
			return seconds, response, err
		case <-time.After(time.Millisecond):
			if fake.HasWaiters() {
				fake.Step(3 * reconnectPause / 2)
				seconds++
			}
		}
	}
}

func TestAWatchWaitsForItsServer(t *testing.T) {
	s := &flakyServer{errs: []error{io.EOF, errRefused, errRefused}}
	seconds, response, err := roundTrip(t.Context(), t, s, http.MethodGet, "https://x/api/v1/pods?watch=true&resourceVersion=3")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusGone || s.requests != 4 || seconds != 3 {
		t.Errorf("%d requests in %d pauses, and got %d: responses of the server are passed on", s.requests, seconds, response.StatusCode)
	}
}

func TestOthersDoNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		method, url string
		err         error
	}{
		"a list":                   {http.MethodGet, "https://x/api/v1/pods?limit=500", errRefused},
		"a binding":                {http.MethodPost, "https://x/api/v1/namespaces/ns/pods/a/binding?watch=true", errRefused},
		"a server of another name": {http.MethodGet, "https://x/api/v1/pods?watch=1", x509.HostnameError{Host: "x", Certificate: &x509.Certificate{}}},
	} {
		s := &flakyServer{errs: []error{c.err, c.err}}
		if _, _, err := roundTrip(t.Context(), t, s, c.method, c.url); !errors.Is(err, c.err) || s.requests != 1 { //nolint:bodyclose // there is none
			t.Errorf("%s: %d requests, and got %v", name, s.requests, err)
		}
	}
}

// A scheduler that ends is not kept up.
func TestReconnectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s := &flakyServer{errs: make([]error, 1<<16)}
	for i := range s.errs {
		s.errs[i] = errRefused
	}
	if _, _, err := roundTrip(ctx, t, s, http.MethodGet, "https://x/api/v1/pods?watch=true"); !errors.Is(err, errRefused) { //nolint:bodyclose // there is none
		t.Errorf("got %v", err)
	}
}

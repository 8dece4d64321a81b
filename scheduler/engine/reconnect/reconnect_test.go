package reconnect

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

var refused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// server answers with these errors, one after another, and then with itself.
type server struct {
	errs  []error
	asked int
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked++
	if s.asked <= len(s.errs) {
		return nil, s.errs[s.asked-1]
	}
	return &http.Response{StatusCode: http.StatusGone, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// ask sends a request, and lets seconds pass while anybody waits for one.
func ask(ctx context.Context, t *testing.T, s *server, method, url string) (seconds int, response *http.Response, err error) {
	t.Helper()
	fake := clocktesting.NewFakeClock(time.Now())
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err = New(fake).Wrap(s).RoundTrip(r) //nolint:bodyclose // the caller's
	}()
	for {
		select {
		case <-done:
			return seconds, response, err
		case <-time.After(time.Millisecond):
			if fake.HasWaiters() {
				fake.Step(3 * pause / 2)
				seconds++
			}
		}
	}
}

func TestAWatchWaitsForItsServer(t *testing.T) {
	s := &server{errs: []error{io.EOF, refused, refused}}
	seconds, response, err := ask(t.Context(), t, s, http.MethodGet, "https://x/api/v1/pods?watch=true&resourceVersion=3")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusGone || s.asked != 4 || seconds != 3 {
		t.Errorf("asked %d times in %d pauses, and got %d: what the server says is passed on", s.asked, seconds, response.StatusCode)
	}
}

func TestOthersDoNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		method, url string
		err         error
	}{
		"a list":                   {http.MethodGet, "https://x/api/v1/pods?limit=500", refused},
		"a binding":                {http.MethodPost, "https://x/api/v1/namespaces/ns/pods/a/binding?watch=true", refused},
		"a server of another name": {http.MethodGet, "https://x/api/v1/pods?watch=1", x509.HostnameError{Host: "x", Certificate: &x509.Certificate{}}},
	} {
		s := &server{errs: []error{c.err, c.err}}
		if _, _, err := ask(t.Context(), t, s, c.method, c.url); !errors.Is(err, c.err) || s.asked != 1 { //nolint:bodyclose // there is none
			t.Errorf("%s: asked %d times, and got %v", name, s.asked, err)
		}
	}
}

// A scheduler that ends is not kept up.
func TestNobodyWaitsAnyMore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s := &server{errs: make([]error, 1<<16)}
	for i := range s.errs {
		s.errs[i] = refused
	}
	if _, _, err := ask(ctx, t, s, http.MethodGet, "https://x/api/v1/pods?watch=true"); !errors.Is(err, refused) { //nolint:bodyclose // there is none
		t.Errorf("got %v", err)
	}
}

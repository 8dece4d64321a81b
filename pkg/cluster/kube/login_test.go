package kube

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// logins is a transport whose requests need a login, which waits for its result.
type logins struct {
	mu      sync.Mutex
	runs    int
	results chan error
}

func (l *logins) RoundTrip(*http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.runs++
	l.mu.Unlock()
	if err := <-l.results; err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK}, nil
}

// A login that fails fails for all requests that wait for it, and a later request tries again.
func TestOneLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &logins{results: make(chan error)}
		l := newOneLogin(base)
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		failed := make([]error, 10)
		var all sync.WaitGroup
		for i := range failed {
			all.Go(func() { _, failed[i] = l.RoundTrip(request) }) //nolint:bodyclose // there is none
		}
		synctest.Wait() // they have come, and one logs in
		base.results <- errors.New("getting credentials: exec: exit code 7")
		all.Wait()
		for _, err := range failed {
			if err == nil || !strings.HasSuffix(err.Error(), "exit code 7") {
				t.Errorf("got %v", err)
			}
		}
		if base.runs != 1 {
			t.Errorf("%d logins for %d requests", base.runs, len(failed))
		}
		again := func() {
			if _, err := l.RoundTrip(request); err != nil { //nolint:bodyclose // there is none
				t.Errorf("after a login that worked: %v", err)
			}
		}
		all.Go(again)
		base.results <- nil
		all.Wait()
		all.Go(again)
		all.Go(again)
		synctest.Wait()
		if base.runs != 4 {
			t.Errorf("%d requests at the same time, with credentials", base.runs-2)
		}
		base.results <- nil
		base.results <- nil
		all.Wait()
	})
}

// What client-go reports of a program that fails is read as that.
func TestLoginFails(t *testing.T) {
	program := filepath.Join(t.TempDir(), "login")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(&rest.Config{Host: "https://127.0.0.1:1", ExecProvider: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: program, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Release(t.Context())
	if got := failure.From(err); !failure.Unauthenticated(err) || !strings.Contains(got.Message, "cannot get credentials: exec: ") || !strings.Contains(got.Message, "exit code 7") {
		t.Errorf("got %+v", got)
	}
}

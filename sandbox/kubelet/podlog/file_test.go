package podlog

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
)

// What a program has written is its pod's log; the other pods go on being made up.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "current"), []byte("one\ntwo\nthree"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ query, want string }{
		{"", "one\ntwo\nthree\n"}, {"?tailLines=1", "three\n"}, {"?limitBytes=5", "one\nt"}, {"?previous=true", "the container of pod p has not run\n"},
	} {
		w := serveFile(t, dir, running(), tt.query)
		if got := w.Body.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, got, tt.want)
		}
	}
	if w := serveFile(t, "", running(), ""); !strings.HasPrefix(w.Body.String(), firstLine) {
		t.Errorf("got %q", w.Body)
	}
}

// A follower gets what is written later, and the end of the run ends the log.
func TestFollowFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "current")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := running()
	client := fake.NewClientset(p)
	follower := &lineWriter{ResponseRecorder: httptest.NewRecorder(), lines: make(chan string, 10)}
	go func() {
		<-follower.lines // the first line has arrived: from here on it waits for more
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString("two\n")
		}
		if err != nil {
			t.Error(err)
		}
		_ = f.Close()
		<-follower.lines
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		if _, err := client.CoreV1().Pods(p.Namespace).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}()
	fileServer(client, dir).handler().ServeHTTP(follower, newRequest(t, "?follow=true"))
	if follower.Body.String() != "one\ntwo\n" {
		t.Errorf("got %q", follower.Body)
	}
}

// lineWriter passes on what a server writes, as it is written.
type lineWriter struct {
	*httptest.ResponseRecorder
	lines chan string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(p)
	w.lines <- string(p)
	return n, err
}

func fileServer(client *fake.Clientset, dir string) Server {
	return Server{Client: client, Clock: clock.RealClock{}, EndsAtAnnotation: endsAt, LogFile: func(_ *corev1.Pod, previous bool) (string, bool) {
		if previous {
			return filepath.Join(dir, "previous"), dir != ""
		}
		return filepath.Join(dir, "current"), dir != ""
	}}
}

func serveFile(t *testing.T, dir string, p *corev1.Pod, query string) *httptest.ResponseRecorder {
	t.Helper()
	return serve(t, fileServer(fake.NewClientset(p), dir), query)
}

func serve(t *testing.T, s Server, query string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, newRequest(t, query))
	return w
}

// newRequest requests the log as the API server does.
func newRequest(t *testing.T, query string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/ns/p/tensorflow"+query, nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	return r
}

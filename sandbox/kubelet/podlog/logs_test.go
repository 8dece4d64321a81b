package podlog

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

const endsAt = "sandbox.gangctl.dev/ends-at"

// get sends a request as the API server would, ten seconds after start.
func get(t *testing.T, p *corev1.Pod, path string) (int, string) {
	t.Helper()
	s := Server{Client: fake.NewClientset(p), Clock: clocktesting.NewFakeClock(start.Add(10 * time.Second)), EndsAtAnnotation: endsAt}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// running is a pod that runs from start for 21 seconds, a step a second, and
// that was restarted after it had exited with 9.
func running() *corev1.Pod {
	p := pod("worker", map[string]string{endsAt: start.Add(21 * time.Second).Format(time.RFC3339Nano)})
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  "tensorflow",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 9, StartedAt: metav1.NewTime(start.Add(-time.Minute)), FinishedAt: metav1.NewTime(start)}},
	}, {Name: "waiting", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}}}
	return p
}

func TestLogs(t *testing.T) {
	tests := []struct {
		name, path  string
		code        int
		first, last string
		lines       int
	}{
		{name: "so far", path: "/containerLogs/ns/p/tensorflow", code: 200, first: firstLine, last: "100\timages/sec", lines: 24},
		{name: "tail", path: "/containerLogs/ns/p/tensorflow?tailLines=2", code: 200, first: "90\timages/sec", last: "100\timages/sec", lines: 2},
		{name: "no lines", path: "/containerLogs/ns/p/tensorflow?tailLines=0", code: 200, lines: 0},
		{name: "since", path: "/containerLogs/ns/p/tensorflow?sinceSeconds=3", code: 200, first: "70\timages/sec", last: "100\timages/sec", lines: 4},
		{name: "since time", path: "/containerLogs/ns/p/tensorflow?sinceTime=2026-01-02T03:04:15Z", code: 200, first: "100\timages/sec", last: "100\timages/sec", lines: 1},
		{name: "timestamps", path: "/containerLogs/ns/p/tensorflow?tailLines=1&timestamps=true", code: 200, first: "2026-01-02T03:04:15Z 100\t", last: "2026-01-02T03:04:15Z 100\t", lines: 1},
		{name: "limit", path: "/containerLogs/ns/p/tensorflow?limitBytes=9", code: 200, first: "simulated", last: "simulated", lines: 1},
		{name: "previous", path: "/containerLogs/ns/p/tensorflow?previous=true", code: 200, first: firstLine, last: "exits with code 9", lines: 14 + defaultSteps + 1},
		{name: "no previous", path: "/containerLogs/ns/p/waiting?previous=true", code: 400, first: `previous terminated container "waiting" in pod "p" not found`, lines: 1},
		{name: "waiting", path: "/containerLogs/ns/p/waiting", code: 400, first: `container "waiting" in pod "p" is waiting to start: CreateContainerConfigError`, lines: 1},
		{name: "no such container", path: "/containerLogs/ns/p/x", code: 400, first: "ContainerCreating", lines: 1},
		{name: "no such pod", path: "/containerLogs/ns/q/tensorflow", code: 404, first: "not found", lines: 1},
		{name: "nonsense", path: "/containerLogs/ns/p/tensorflow?tailLines=x", code: 400, first: `tailLines="x"`, lines: 1},
		{name: "more nonsense", path: "/containerLogs/ns/p/tensorflow?sinceTime=now", code: 400, first: `sinceTime="now"`, lines: 1},
		{name: "exec", path: "/exec/ns/p/tensorflow", code: 501, first: "simulates containers", lines: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, body := get(t, running(), tt.path)
			lines := strings.FieldsFunc(body, func(r rune) bool { return r == '\n' })
			if code != tt.code || len(lines) != tt.lines {
				t.Fatalf("%d, %d lines:\n%s", code, len(lines), body)
			}
			if len(lines) > 0 && (!strings.Contains(lines[0], tt.first) || !strings.Contains(lines[len(lines)-1], tt.last)) {
				t.Errorf("got\n%s", body)
			}
		})
	}
}

// A follower gets everything once, and is let go when the container ends.
func TestFollow(t *testing.T) {
	p := running()
	client := fake.NewClientset(p)
	clock := clocktesting.NewFakeClock(start.Add(10 * time.Second))
	s := Server{Client: client, Clock: clock, EndsAtAnnotation: endsAt}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/ns/p/tensorflow?follow=true", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.handler().ServeHTTP(w, r)
	}()
	ended := running()
	ended.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		StartedAt: metav1.NewTime(start), FinishedAt: metav1.NewTime(start.Add(21 * time.Second))}}
	for steps := 0; ; steps++ {
		if steps == 40 {
			if _, err := client.CoreV1().Pods("ns").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-done:
			code, whole := get(t, ended, "/containerLogs/ns/p/tensorflow")
			_ = code
			if got := w.Body.String(); steps < 40 || strings.Count(got, "\n") != 14+defaultSteps+3 || !strings.HasPrefix(got, firstLine) {
				t.Errorf("after %d steps:\n%s\nwhole:\n%s", steps, got, whole)
			}
			return
		case <-time.After(2 * time.Millisecond):
			if clock.HasWaiters() {
				clock.Step(pollEvery)
			} else {
				steps--
			}
		}
	}
}

func TestOnlyTheAPIServerIsAuthorized(t *testing.T) {
	s := Server{Client: fake.NewClientset(), Clock: clocktesting.NewFakeClock(start)}
	for path, want := range map[string]int{"/containerLogs/ns/p/c": http.StatusUnauthorized, "/exec/ns/p/c": http.StatusUnauthorized, "/healthz": http.StatusOK} {
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

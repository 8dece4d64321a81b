package top

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

const metricsPath = "/apis/metrics.k8s.io/v1beta1/nodes"

// What nodes really use is shown where it is measured, and only there.
func TestMeasured(t *testing.T) {
	c := kubetest.Serve(t, shop().Done())
	plain, _, _ := run(t, c.Client, 0, "node")
	c.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, _ *http.Request) {
		kubetest.Write(w, 200, json.RawMessage(`{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[
			{"metadata":{"name":"gpu-1"},"timestamp":"2026-11-21T14:00:00Z","window":"20s","usage":{"cpu":"12500m","memory":"64Gi"}}]}`))
	})
	stdout, stderr, failed := run(t, c.Client, 0, "node")
	if failed != nil || stderr != "" || strings.Contains(plain, "CPU-NOW") || !strings.Contains(stdout, "CPU-NOW   MEM-NOW") {
		t.Fatalf("got %+v, %s\n%s\n%s", failed, stderr, plain, stdout)
	}
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, "gpu-1 ") && !strings.Contains(line, " 12.5      64Gi ") || strings.HasPrefix(line, "gpu-2 ") && !strings.Contains(line, " -         -  ") {
			t.Error(line)
		}
	}
	stdout, _, _ = run(t, c.Client, 0, "node", "-o", "json")
	var r usage.Nodes
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Nodes {
		if (n.Measured != nil) != (n.Name == "gpu-1") || n.Measured != nil && *n.Measured != (usage.Measured{CPU: 12500, Memory: 64 << 30}) {
			t.Errorf("%s: %+v", n.Name, n.Measured)
		}
	}
}

// That it cannot be had is reported, and keeps nothing else back.
func TestNotMeasured(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		`User "bob" cannot list resource "nodes"`: func(w http.ResponseWriter, _ *http.Request) {
			kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "nodes" in API group "metrics.k8s.io"`, nil))
		},
		"the server is currently unable": func(w http.ResponseWriter, _ *http.Request) {
			kubetest.Write(w, 503, kubetest.Status(503, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request", nil))
		},
		"invalid character": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("<html>"))
		},
		"in time": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		c := kubetest.Serve(t, shop().Done())
		c.HandleFunc("GET "+metricsPath, answer)
		begin := time.Now()
		stdout, stderr, failed := run(t, c.Client, 0, "node")
		if failed != nil || !strings.Contains(stdout, "gpu-1 ") || strings.Contains(stdout, "CPU-NOW") || !strings.Contains(stderr, "note: what nodes really use is not shown: ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: got %+v, %s", want, failed, stderr)
		}
		if took := time.Since(begin); took > 5*measuredBudget {
			t.Errorf("%s: it took %s", want, took)
		}
	}
	if stdout, _, failed := run(t, kubetest.Serve(t, shop().Done()).Client, 0, "job"); failed != nil || strings.Contains(stdout, "NOW") {
		t.Error(failed, failure.CodeOK)
	}
}

// What the pods of jobs really use stands alongside what they request; of how many it is the sum is shown where it is not all of them.
func TestMeasuredJobs(t *testing.T) {
	c := kubetest.Serve(t, shop().Done())
	pod := func(namespace, name string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},"containers":[{"name":"tensorflow","usage":{"cpu":"2500m","memory":"20Gi"}},{"name":"proxy","usage":{"cpu":"500m","memory":"1Gi"}}]}`, namespace, name)
	}
	list := `{"kind":"PodMetricsList","items":[` + strings.Join([]string{pod("team", "llama-worker-0"), pod("team", "llama-worker-1"),
		pod("team", "small-worker-0"), pod("team", "small-worker-1"), pod("team", "small-worker-2"), pod("elsewhere", "llama-worker-2")}, ",") + `]}`
	for _, path := range []string{"/apis/metrics.k8s.io/v1beta1/pods", "/apis/metrics.k8s.io/v1beta1/namespaces/team/pods"} {
		c.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { kubetest.Write(w, 200, json.RawMessage(list)) })
	}
	for _, args := range []string{"job", "job -A"} {
		stdout, stderr, failed := run(t, c.Client, 0, strings.Fields(args)...)
		if failed != nil || stderr != "" || !strings.Contains(stdout, "CPU   MEM     CPU-NOW   MEM-NOW ") {
			t.Fatalf("%s: got %+v, %s\n%s", args, failed, stderr, stdout)
		}
		for job, want := range map[string]string{"llama": "32    256Gi   ≥6        ≥42Gi ", "small": "24    192Gi   9         63Gi", "waits": "0     0Gi     -         - "} {
			if !regexp.MustCompile(`(?m)^(team +)?` + job + ` .* ` + want).MatchString(stdout) {
				t.Errorf("%s: %s: no %q in\n%s", args, job, want, stdout)
			}
		}
	}
	stdout, _, _ := run(t, c.Client, 0, "job", "-o", "json")
	var r usage.Jobs
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	for _, j := range r.Jobs {
		if j.Name == "llama" && *j.Measured != (usage.Measured{CPU: 6000, Memory: 42 << 30, Pods: 2}) || j.Name == "waits" && j.Measured != nil {
			t.Errorf("%s: got %+v", j.Name, j.Measured)
		}
	}
}

// A user who may not read metrics gets a note, and sees the jobs.
func TestNotMeasuredJobs(t *testing.T) {
	c := kubetest.Serve(t, shop().Done())
	c.HandleFunc("GET /apis/metrics.k8s.io/v1beta1/namespaces/team/pods", func(w http.ResponseWriter, _ *http.Request) {
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "pods" in API group "metrics.k8s.io"`, nil))
	})
	stdout, stderr, failed := run(t, c.Client, 0, "job")
	if want := `note: what pods really use is not shown: list PodMetrics in namespace team: User "bob" cannot list`; failed != nil || !strings.Contains(stdout, "llama") || strings.Contains(stdout, "NOW") || !strings.Contains(stderr, want) {
		t.Errorf("got %+v, %s", failed, stderr)
	}
}

package whypending

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// cluster is one that may change while the command looks at it.
type cluster struct {
	*kubetest.Cluster
	clock *clocktesting.FakeClock
}

func serve(t *testing.T, c *clustertest.Cluster) *cluster {
	t.Helper()
	return &cluster{Cluster: kubetest.Serve(t, c.Done()), clock: clocktesting.NewFakeClock(clustertest.Now)}
}

// query runs the command against the cluster, in namespace team.
func (l *cluster) query(ctx context.Context, args ...string) (stdout, stderr string, failed *failure.Error) {
	out, errOut := &kubetest.Screen{}, &kubetest.Screen{}
	failed = l.queryTo(ctx, out, errOut, args...)
	return out.String(), errOut.String(), failed
}

func (l *cluster) queryTo(ctx context.Context, out, errOut *kubetest.Screen, args ...string) *failure.Error {
	io, _, _, _ := iostreams.Test(l.clock)
	io.SetOut(out)
	io.ErrOut = errOut
	cmd := NewCommand(&cmdutil.Factory{IO: io, Namespace: func() (string, error) { return "team", nil }, Client: l.Client}, nil)
	return failure.From(commandtest.Execute(ctx, cmd, args...))
}

func busy() *clustertest.Cluster {
	return clustertest.New().Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8})
}

func TestLive(t *testing.T) {
	l := serve(t, busy())
	out, _, failed := l.query(t.Context(), "llama")
	if failed == nil || failed.Code != 3 || !strings.HasPrefix(out, "WAITING  0 of 16 GPUs free") {
		t.Fatalf("got %v\n%s", failed, out)
	}
	if quiet, _, _ := l.query(t.Context(), "llama", "-q"); quiet != out[:strings.Index(out, "\n")+1] {
		t.Errorf("-q prints %q", quiet)
	}
	if node, _, _ := l.query(t.Context(), "llama", "--node", "n2"); !strings.Contains(node, "Why not n2\n  n2  Worker: nvidia.com/gpu: requested 8, available 0, total 8\n") || strings.Contains(node, "n1  Worker") {
		t.Errorf("--node prints\n%s", node)
	}
	if verbose, _, _ := l.query(t.Context(), "llama", "-v"); !strings.Contains(verbose, "n1  Worker") || !strings.Contains(verbose, "n2  Worker") {
		t.Errorf("-v prints\n%s", verbose)
	}
	for _, r := range l.Requests() {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("there is nothing to probe, but: %s", r)
		}
	}
	// What was saved gives the same answer.
	file := filepath.Join(t.TempDir(), "seen.yaml.gz")
	if _, stderr, _ := l.query(t.Context(), "llama", "--save", file); stderr != "saved what was seen to "+file+"\n" {
		t.Errorf("--save says %q", stderr)
	}
	if again, _, code, _ := run(t, "llama", "--from", file); again != out || code != 3 {
		t.Errorf("another answer from what was saved (exit %d):\n%s", code, again)
	}
}

// Missing pods are created as a dry run, unless a flag forbids it; the API server's answer is the explanation.
func TestProbe(t *testing.T) {
	const refusal = `pods "llama-worker-0" is forbidden: error looking up service account team/trainer: serviceaccount "trainer" not found`
	l := serve(t, clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8, Missing: 2}))
	l.Refuse("POST /api/v1/namespaces/team/pods", 403, metav1.StatusReasonForbidden, refusal, nil)
	out, _, failed := l.query(t.Context(), "llama")
	if failed == nil || failed.Code != 4 || !strings.HasPrefix(out, `BLOCKED  llama: ServiceAccount "trainer" does not exist`) {
		t.Errorf("got %v\n%s", failed, out)
	}
	before := len(l.Requests())
	out, _, _ = l.query(t.Context(), "llama", "--no-probe")
	if strings.Contains(out, "trainer") {
		t.Errorf("got\n%s", out)
	}
	for _, r := range l.Requests()[before:] {
		if strings.HasPrefix(r, "POST /api/v1/namespaces/team/pods") {
			t.Errorf("a probe all the same: %s", r)
		}
	}
}

// A probe that the caller may not make shows nothing about the pods, and that is reported.
func TestProbeDenied(t *testing.T) {
	l := serve(t, clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8, Missing: 2}))
	l.Refuse("POST /api/v1/namespaces/team/pods", 403, metav1.StatusReasonForbidden, `pods is forbidden: User "eve" cannot create resource "pods" in API group "" in the namespace "team"`, nil)
	out, _, failed := l.query(t.Context(), "llama")
	for _, want := range []string{"pods in namespace team: you may not create; whether the API server would accept the pods was not tried", "An administrator can grant eve what is missing", "- create\n", "pods unknown 0/2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if failed == nil || failed.Code != 3 {
		t.Errorf("got %v", failed)
	}
}

// A user who may read nothing gets the first right that is missing; programs get the answer besides.
func TestNoRights(t *testing.T) {
	l := serve(t, busy())
	for _, root := range []string{"/api/v1", "/api/v1/namespaces/team", "/apis/kubeflow.org/v1", "/apis/kubeflow.org/v1/namespaces/team", "/apis/apps/v1", "/apis/apps/v1/namespaces/team"} {
		for _, resource := range []string{"tfjobs", "pods", "nodes", "deployments"} {
			l.Deny("eve", root+"/"+resource)
		}
	}
	l.Answer("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": "eve@example.com"}}})
	const want = `list TFJobs in namespace team: x is forbidden: User "eve" cannot list resource "tfjobs"`
	for _, args := range [][]string{{"llama"}, {"tfjob/llama"}, {"llama", "-o", "json"}, {}} {
		out, _, failed := l.query(t.Context(), args...)
		if failed == nil || failed.Code != 8 || failed.Message != want {
			t.Fatalf("%v: got %+v", args, failed)
		}
		for _, part := range []string{"kubectl apply -f - <<'EOF'\n", "kind: Role\n", "- tfjobs\n", "- pods\n", "name: eve@example.com\n", "\nEOF"} {
			if !strings.Contains(failed.Hint, part) {
				t.Errorf("%v: the hint lacks %q:\n%s", args, part, failed.Hint)
			}
		}
		if len(args) < 3 {
			if out != "" {
				t.Errorf("%v: a half answer: %s", args, out)
			}
			continue
		}
		var a struct {
			Verdict string
			Rights  struct{ User, Grant string }
		}
		if err := json.Unmarshal([]byte(out), &a); err != nil || a.Verdict != "UNKNOWN" || a.Rights.User != "eve@example.com" || a.Rights.Grant == "" {
			t.Errorf("got %v\n%s", err, out)
		}
	}
}

package list

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const (
	jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	podsPath = "/api/v1/namespaces/research/pods"
	short    = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. gang research/mistral needs 2 more members"
	// brief is short as a line of the table has it: what differs between gangs comes first.
	brief = "4 Insufficient nvidia.com/gpu. gang research/mistral needs 2 more members (0/4 nodes are available)"
)

// run runs the command line against the server, five minutes after the objects were made; width 0 is a pipe.
func run(t *testing.T, s *kubetest.Server, width int, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	f, streams := commandtest.Factory("research", kubetest.Created.Add(5*time.Minute), width, s.Client)
	err = commandtest.Execute(t.Context(), NewCommand(f, nil), args...)
	return streams.Out.String(), streams.ErrOut.String(), err
}

func TestList(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "mistral", 2), kubetest.Job("research", "llama", 4)))
	s.Answer("GET "+podsPath, 200, kubetest.PodList(
		kubetest.Pod("research", "llama", 0, "n1", ""), kubetest.Pod("research", "llama", 1, "n1", ""),
		kubetest.Pod("research", "llama", 2, "n2", ""), kubetest.Pod("research", "llama", 3, "n2", ""),
		kubetest.Pod("research", "mistral", 0, "", short), kubetest.Pod("research", "mistral", 1, "", short),
		kubetest.Pod("research", "deleted-job", 0, "n1", "")))
	tests := []struct {
		name  string
		width int
		args  []string
		want  []string
	}{
		{"piped", 0, nil, []string{
			"NAME      KIND    STATE     READY   GPUS   AGE   REASON",
			"llama     TFJob   Running   4/4     8      5m",
			"mistral   TFJob   Pending   0/2     4      5m    " + brief}},
		{"terminal", 90, nil, []string{
			"NAME      KIND    STATE     READY   GPUS   AGE   REASON",
			"llama     TFJob   Running   4/4     8      5m",
			"mistral   TFJob   Pending   0/2     4      5m    " + brief[:40] + "…"}},
		{"narrow terminal", 60, nil, []string{
			"NAME      STATE     READY   GPUS   REASON",
			"llama     Running   4/4     8",
			"mistral   Pending   0/2     4      " + brief[:24] + "…"}},
		{"narrower than the columns", 40, []string{"-o", "wide"}, []string{
			"NAME      STATE     REASON",
			"llama     Running",
			"mistral   Pending   " + brief[:19] + "…"}},
		{"wide", 0, []string{"-o", "wide", "--no-headers"}, []string{
			"llama     TFJob   Running   4/4   8     5m    4/4   gang-scheduler",
			"mistral   TFJob   Pending   0/2   4     5m    2/2   gang-scheduler   " + brief}},
		{"name", 0, []string{"-o", "name"}, []string{"tfjob.kubeflow.org/llama", "tfjob.kubeflow.org/mistral"}},
		{"by state", 0, []string{"--sort-by", "state", "-o", "name"}, []string{"tfjob.kubeflow.org/mistral", "tfjob.kubeflow.org/llama"}},
		{"by GPUs", 0, []string{"--sort-by", "gpus", "--no-headers"}, []string{
			"llama     TFJob   Running   4/4   8     5m",
			"mistral   TFJob   Pending   0/2   4     5m    " + brief}},
		{"jsonpath", 0, []string{"-o", "jsonpath={.items[*].metadata.name}"}, []string{"llama mistral"}},
		{"custom columns", 0, []string{"-o", "custom-columns=N:.metadata.name,W:.spec.tfReplicaSpecs.Worker.replicas"},
			[]string{"N         W", "llama     4", "mistral   2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, err := run(t, s, tt.width, tt.args...)
			if err != nil || stderr != "" {
				t.Fatalf("got %v, %q", err, stderr)
			}
			if diff := cmp.Diff(tt.want, strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// One request a kind, answered from the cache of the API server, and one for a group of the jobs' dialect.
func TestRequests(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /apis/kubeflow.org/v1/tfjobs", 200, kubetest.JobList("", kubetest.Job("b", "x", 1), kubetest.Job("a", "y", 1)))
	s.Answer("GET /api/v1/pods", 200, kubetest.PodList())
	stdout, _, err := run(t, s, 0, "-A", "-l", "team=x")
	want := "NAMESPACE   NAME   KIND    STATE     READY   GPUS   AGE   REASON\n" +
		"a           y      TFJob   Pending   0/1     2      5m    no pods yet\n" +
		"b           x      TFJob   Pending   0/1     2      5m    no pods yet\n"
	if err != nil || stdout != want {
		t.Errorf("got %v\n%s", err, stdout)
	}
	wantRequests := []string{
		"GET /apis/kubeflow.org/v1/tfjobs?labelSelector=team%3Dx&limit=5000&resourceVersion=0",
		"GET /apis/scheduling.x-k8s.io", "GET /apis/scheduling.sigs.k8s.io", // which are not served
		"GET /api/v1/pods?labelSelector=training.kubeflow.org%2Fjob-name&limit=5000&resourceVersion=0",
	}
	if diff := cmp.Diff(wantRequests, s.AboutTFJobs()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// On a terminal a list that takes longer than a second reports how much it has read.
func TestProgress(t *testing.T) {
	s := kubetest.New(t)
	clock := clocktesting.NewFakeClock(kubetest.Created.Time)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama", 1), kubetest.Job("research", "mistral", 1)))
	s.HandleFunc("GET "+podsPath, func(w http.ResponseWriter, r *http.Request) {
		for range 2 { // the second timer is that of the line that is shown
			for !clock.HasWaiters() && r.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			clock.Step(2 * time.Second)
		}
		kubetest.Write(w, 200, kubetest.PodList())
	})
	io, _, _, errOut := iostreams.Test(clock)
	io.SetTerminal(80)
	cmd := NewCommand(&cmdutil.Factory{IO: io, Client: s.Client, Namespace: func() (string, error) { return "research", nil }}, nil)
	cmd.SetArgs(nil)
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(errOut.String(), "Reading the cluster: 2 objects") {
		t.Errorf("got %v, %q", err, errOut)
	}
}

// A server that answers in pages is queried for all of them.
func TestPages(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("GET "+jobsPath, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("continue") == "" {
			kubetest.Write(w, 200, kubetest.JobList("more", kubetest.Job("research", "a", 1)))
			return
		}
		kubetest.Write(w, 200, kubetest.JobList("", kubetest.Job("research", "b", 1)))
	})
	stdout, _, err := run(t, s, 0, "-o", "name")
	if err != nil || stdout != "tfjob.kubeflow.org/a\ntfjob.kubeflow.org/b\n" {
		t.Errorf("got %v\n%s", err, stdout)
	}
}

func TestNoJobs(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList(""))
	s.Answer("GET /apis/kubeflow.org/v1/tfjobs", 200, kubetest.JobList(""))
	for args, want := range map[string]string{
		"":          "no jobs in namespace research\n",
		"-A":        "no jobs in any namespace\n",
		"-l team=x": "no jobs with labels team=x in namespace research\n",
		"-o name":   "",
	} {
		stdout, stderr, err := run(t, s, 0, strings.Fields(args)...)
		if err != nil || stdout != "" || stderr != want {
			t.Errorf("%q: got %v, %q, %q", args, err, stdout, stderr)
		}
	}
	if stdout, _, err := run(t, s, 0, "-o", "json"); err != nil || !strings.Contains(stdout, `"items": []`) {
		t.Errorf("an empty list in JSON: %v, %s", err, stdout)
	}
}

// A namespace that does not exist is no namespace without jobs, where that may be seen.
func TestNoNamespace(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList(""))
	s.Refuse("GET /api/v1/namespaces/research", 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "research", Kind: "namespaces"})
	hidden := kubetest.New(t)
	hidden.Answer("GET "+jobsPath, 200, kubetest.JobList(""))
	hidden.Refuse("GET /api/v1/namespaces/research", 403, metav1.StatusReasonForbidden, "no", nil)
	const none, note = "no jobs in namespace research\n", "note: there is no namespace research\n"
	for _, tt := range []struct {
		s    *kubetest.Server
		args []string
		want string
	}{{s, nil, none + note}, {s, []string{"-o", "name"}, note}, {hidden, nil, none}} {
		if _, stderr, err := run(t, tt.s, 0, tt.args...); err != nil || stderr != tt.want {
			t.Errorf("%q: got %v, %q", tt.args, err, stderr)
		}
	}
}

// A list that failed is an error, never an empty or a half-true table.
func TestFailures(t *testing.T) {
	forbidden := `pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "research"`
	tests := []struct {
		name          string
		prepare       func(*kubetest.Server)
		message, hint string
	}{
		{"no CRD", func(s *kubetest.Server) { s.NoJobs() }, "list TFJobs in namespace research: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator"},
		{"401", func(s *kubetest.Server) {
			s.Refuse("GET "+jobsPath, 401, metav1.StatusReasonUnauthorized, "Unauthorized", nil)
		},
			"list TFJobs in namespace research: the API server does not accept your credentials (401 Unauthorized)", "log in"},
		{"403 on pods", func(s *kubetest.Server) {
			s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama", 1)))
			s.Refuse("GET "+podsPath, 403, metav1.StatusReasonForbidden, forbidden, nil)
		}, "list pods in namespace research: " + forbidden, `resources: ["pods"]`},
		{"500", func(s *kubetest.Server) {
			s.Refuse("GET "+jobsPath, 500, metav1.StatusReasonInternalError, "etcd is gone", nil)
		}, "list TFJobs in namespace research: etcd is gone", "try again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.New(t)
			tt.prepare(s)
			stdout, _, err := run(t, s, 0)
			got := failure.From(err)
			if stdout != "" || got == nil || got.Message != tt.message || !strings.Contains(got.Hint, tt.hint) || got.Code != failure.CodeError {
				t.Errorf("got %+v, %q", got, stdout)
			}
		})
	}
}

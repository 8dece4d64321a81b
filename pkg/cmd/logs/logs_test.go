package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const (
	jobPath  = "/apis/kubeflow.org/v1/namespaces/research/tfjobs/llama"
	podsPath = "/api/v1/namespaces/research/pods"
)

// run runs the command line; width 0 is a pipe.
func run(t *testing.T, client func() (*kube.Client, error), width int, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("research", kubetest.Created.Add(5*time.Minute), width, client)
	return commandtest.Run(t.Context(), NewCommand(f, nil), streams, args...)
}

// worker is a pod whose container has a state, and one before unless that is nil.
func worker(index int, now corev1.ContainerState, before *corev1.ContainerStateTerminated) *corev1.Pod {
	p := kubetest.Pod("research", "llama", index, "n1", "")
	p.Spec.Containers = []corev1.Container{{Name: "tensorflow"}, {Name: "sidecar"}}
	s := corev1.ContainerStatus{Name: "tensorflow", State: now}
	if before != nil {
		s.RestartCount, s.LastTerminationState.Terminated = 1, before
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{s, {Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return p
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: kubetest.Created}}
}

func ended(code int32, reason string, after time.Duration) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(kubetest.Created.Add(after))}
}

// gangServer serves a job of four: two run, of which one was restarted, one has failed, one has not started.
func gangServer(t *testing.T) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 4))
	s.Answer("GET "+podsPath, 200, kubetest.PodList(
		worker(0, running(), nil),
		worker(1, running(), ended(137, "OOMKilled", time.Minute)),
		worker(2, corev1.ContainerState{Terminated: ended(1, "Error", 2*time.Minute)}, nil),
		worker(3, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}, nil)))
	for pod, log := range map[string]string{
		"llama-worker-0": "03:04:06Z one\n03:04:08Z three\n",
		"llama-worker-1": "03:04:07Z two\n",
		"llama-worker-2": "03:04:09.5Z boom\n",
	} {
		s.HandleFunc("GET "+podsPath+"/"+pod+"/log", func(w http.ResponseWriter, r *http.Request) {
			text := log
			if r.FormValue("previous") == "true" {
				text = "03:04:05Z before\n"
			}
			if r.FormValue("container") == "sidecar" {
				text = "03:04:05Z beside\n"
			}
			for line := range strings.Lines(text) {
				fmt.Fprintf(w, "2026-01-02T%s", line)
			}
		})
	}
	return s
}

func TestLogs(t *testing.T) {
	const end = "note: 1 of 4 members have not started\n[worker-1] exited with code 137 (OOMKilled)\n[worker-2] exited with code 1\n"
	tests := map[string]struct{ stdout, stderr string }{
		"":                          {"[worker-0] one\n[worker-1] two\n[worker-0] three\n[worker-2] boom\n", end},
		"--timestamps":              {"[worker-0] 2026-01-02T03:04:06Z one\n[worker-1] 2026-01-02T03:04:07Z two\n[worker-0] 2026-01-02T03:04:08Z three\n[worker-2] 2026-01-02T03:04:09.5Z boom\n", end},
		"-o raw":                    {"one\ntwo\nthree\nboom\n", end},
		"--include o --exclude w":   {"[worker-0] one\n[worker-2] boom\n", end},
		"--index 0":                 {"[worker-0] one\n[worker-0] three\n", ""},
		"--role worker --index 0-1": {"[worker-0] one\n[worker-1] two\n[worker-0] three\n", "[worker-1] exited with code 137 (OOMKilled)\n"},
		"--failed":                  {"[worker-2] boom\n", "[worker-2] exited with code 1\n"},
		"--first-error":             {"[worker-1] before\n", "[worker-1] exited with code 137 (OOMKilled)\n"},
		"--previous":                {"[worker-1] before\n", "[worker-1] exited with code 137 (OOMKilled)\n"},
		"-c sidecar --index 0":      {"[worker-0] beside\n", ""},
		"--max-streams 1": {"[worker-0] one\n[worker-0] three\n[worker-1] two\n[worker-2] boom\n",
			"note: 3 members share 1 connections: they come one after the other, not in the order of time (--max-streams)\n" + end},
	}
	for args, want := range tests {
		t.Run(args, func(t *testing.T) {
			stdout, stderr, failed := run(t, gangServer(t).Client, 0, append([]string{"llama"}, strings.Fields(args)...)...)
			if diff := cmp.Diff(want.stdout, stdout); failed != nil || diff != "" {
				t.Errorf("got %+v, -want +got\n%s", failed, diff)
			}
			if diff := cmp.Diff(want.stderr, stderr); diff != "" {
				t.Errorf("standard error: -want +got\n%s", diff)
			}
		})
	}
}

// A connection that is closed without an answer is no empty log.
func TestNoAnswer(t *testing.T) {
	for _, args := range []string{"", "--max-streams 1"} {
		s := kubetest.New(t)
		s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 2))
		s.Answer("GET "+podsPath, 200, kubetest.PodList(worker(0, running(), nil), worker(1, running(), nil)))
		s.HandleFunc("GET "+podsPath+"/{pod}/log", func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("pod") == "llama-worker-0" {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintln(w, "2026-01-02T03:04:06Z one")
		})
		stdout, _, failed := run(t, s.Client, 0, append([]string{"llama"}, strings.Fields(args)...)...)
		if stdout != "[worker-1] one\n" || failed == nil || failed.Code != failure.CodeError || !strings.HasPrefix(failed.Message, "get log of pod research/llama-worker-0: the connection to the API server at ") {
			t.Errorf("%q: got %+v, %q", args, failed, stdout)
		}
	}
}

// What is requested of the API server: only what is needed.
func TestRequests(t *testing.T) {
	s := gangServer(t)
	if _, _, failed := run(t, s.Client, 0, "llama", "--index", "0", "--tail", "5", "--since", "90s"); failed != nil {
		t.Fatal(failed)
	}
	want := []string{"GET " + jobPath, "GET " + podsPath + "?labelSelector=training.kubeflow.org%2Fjob-name%3Dllama&limit=500&resourceVersion=0",
		"GET " + podsPath + "/llama-worker-0/log?container=tensorflow&sinceSeconds=90&tailLines=5&timestamps=true"}
	if diff := cmp.Diff(want, s.AboutTFJobs()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	stdout, _, failed := run(t, gangServer(t).Client, 0, "llama", "-o", "json", "--index", "2")
	var got map[string]any
	if err := json.Unmarshal([]byte(stdout), &got); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	want := map[string]any{"time": "2026-01-02T03:04:09.5Z", "namespace": "research", "pod": "llama-worker-2", "uid": "", "role": "worker", "index": 2., "container": "tensorflow", "line": "boom"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Members keep their colour whatever else is printed.
func TestColours(t *testing.T) {
	all, _, _ := run(t, gangServer(t).Client, 80, "llama")
	one, _, _ := run(t, gangServer(t).Client, 80, "llama", "--index", "1")
	if one != "\x1b[33m[worker-1]\x1b[0m two\n" || !strings.Contains(all, one) || !strings.Contains(all, "\x1b[36m[worker-0]\x1b[0m one\n") {
		t.Errorf("got %q, %q", all, one)
	}
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "logs needs the name of one job, got 0",
		"a b":                        "logs needs the name of one job, got 2",
		"a -f --previous":            "--previous is over: it cannot be followed",
		"a -f --failed":              "--failed and --first-error are for what has happened, not for --follow",
		"a --failed --first-error":   "--failed and --first-error cannot be used together",
		"a --previous --first-error": "--first-error finds the right run itself",
		"a --since -1s":              "--since -1s: must not be negative",
		"a --since 1ms":              "--since 1ms: must be 1s or more",
		"a --tail -2":                "--tail -2: must be -1 or more",
		"a --max-streams 0":          "--max-streams 0: must be 1 to 1000",
		"a --include (":              `--include "(": error parsing regexp: missing closing ): ` + "`(`",
		"a --index 5-2":              `--index "5-2": want numbers from 0 on, such as 0 or 0,2-5`,
		"a --index x":                `--index "x": want numbers from 0 on, such as 0 or 0,2-5`,
		"a -o yaml":                  `--output "yaml": must be one of raw, json`,
	} {
		_, _, failed := run(t, nil, 0, strings.Fields(args)...)
		if failed == nil || failed.Message != want || failed.Code != failure.CodeUsage {
			t.Errorf("%s: got %+v", args, failed)
		}
	}
	seen := &Options{}
	cmd := NewCommand(&cmdutil.Factory{}, func(_ context.Context, o *Options) error { seen = o; return nil })
	cmd.SetArgs([]string{"llama", "-f", "--role", "ps,worker", "--index", "0,2-3"})
	if err := cmd.Execute(); err != nil || !seen.Follow || len(seen.Roles) != 2 || !seen.indexes(3) || seen.indexes(1) {
		t.Errorf("got %v, %+v", err, seen)
	}
}

// Where nothing was printed, the error has the reason.
func TestNothing(t *testing.T) {
	waits := kubetest.New(t)
	waits.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 1))
	pending := kubetest.Pod("research", "llama", 0, "", "no room")
	pending.Spec.Containers = []corev1.Container{{Name: "tensorflow"}}
	waits.Answer("GET "+podsPath, 200, kubetest.PodList(pending))
	well := kubetest.New(t)
	well.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 1))
	well.Answer("GET "+podsPath, 200, kubetest.PodList(worker(0, running(), nil)))
	ended := kubetest.New(t) // and its pods are gone
	job := kubetest.Job("research", "llama", 2)
	job.Status.Conditions = []kubeflowv1.JobCondition{{Type: kubeflowv1.JobSucceeded, Status: corev1.ConditionTrue}}
	ended.Answer("GET "+jobPath, 200, job)
	ended.Answer("GET "+podsPath, 200, kubetest.PodList())
	batch := kubetest.New(t)
	failing := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "llama", UID: "u"}}
	failing.Spec.Parallelism, failing.Spec.Template.Spec.RestartPolicy = ptr.To[int32](2), corev1.RestartPolicyOnFailure
	failing.Spec.Template.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "llama"}
	failing.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	failing.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}
	batch.Answer("GET /apis/batch/v1/namespaces/research/jobs/llama", 200, failing)
	batch.Answer("GET "+podsPath, 200, kubetest.PodList())
	const left = "no pod of llama is left to read: it has ended"
	tests := []struct {
		s             *kubetest.Server
		args          string
		message, hint string
	}{
		{ended, "", left, "with --clean-pod-policy None a job keeps its pods when it ends; or repeat it, and read them as they come: gangctl resubmit tfjob/llama -n research --name llama-2 --follow"},
		{ended, "-f", left, "--follow"},
		{ended, "--index 1", "no pod of these members of llama is left to read: it has ended", "--follow"},
		{batch, "-f", left, "gangctl resubmit batchjob/llama -n research --name llama-2 --set spec.template.spec.restartPolicy=Never"},
		{waits, "", "no member of llama has started", "-f"},
		{well, "--failed", "no member of llama has failed", "--previous"},
		{well, "--first-error", "no member of llama has failed", "gangctl get llama"},
		{well, "--previous", "no member of llama was restarted: there is no run before", "leave out --previous"},
		{well, "--role chief", `llama has no role "chief"`, "its roles are: worker"},
		{well, "--index 7", "llama has no member with index 7", "gangctl get llama -n research"},
		{well, "-c nope", `pod research/llama-worker-0 has no container "nope"`, "its containers are: tensorflow, sidecar"},
	}
	for _, tt := range tests {
		stdout, _, failed := run(t, tt.s.Client, 0, append([]string{"llama"}, strings.Fields(tt.args)...)...)
		if stdout != "" || failed == nil || failed.Message != tt.message || !strings.Contains(failed.Hint, tt.hint) || failed.Code != failure.CodeError {
			t.Errorf("%s: got %+v, %q", tt.args, failed, stdout)
		}
	}
}

// A request that failed is an error, with and without -f.
func TestFailures(t *testing.T) {
	pods := func(s *kubetest.Server) { s.Answer("GET "+podsPath, 200, kubetest.PodList(worker(0, running(), nil))) }
	job := func(s *kubetest.Server) { s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 1)) }
	const forbidden = `User "bob" cannot get resource "pods/log" in API group "" in the namespace "research"`
	tests := map[string]struct {
		prepare       func(*kubetest.Server)
		message, hint string
	}{
		"404 of the kind": {func(s *kubetest.Server) { s.NoJobs() }, "get TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator"},
		"404 of the job": {func(s *kubetest.Server) {
			s.Refuse("GET "+jobPath, 404, metav1.StatusReasonNotFound, "x", &metav1.StatusDetails{Name: "llama", Kind: "tfjobs"})
			s.Answer("GET /apis/kubeflow.org/v1/namespaces/research/tfjobs", 200, kubetest.JobList("", kubetest.Job("research", "llama2", 1)))
		}, "get job research/llama: not found", "did you mean llama2?"},
		"401": {func(s *kubetest.Server) {
			s.Refuse("GET "+jobPath, 401, metav1.StatusReasonUnauthorized, "Unauthorized", nil)
		},
			"get TFJob research/llama: the API server does not accept your credentials (401 Unauthorized)", "log in"},
		"403 on pods": {func(s *kubetest.Server) {
			job(s)
			s.Refuse("GET "+podsPath, 403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "pods"`, nil)
		}, `list pods in namespace research: User "bob" cannot list resource "pods"`, `resources: ["pods"]`},
		"403 on logs": {func(s *kubetest.Server) {
			job(s)
			pods(s)
			s.Refuse("GET "+podsPath+"/llama-worker-0/log", 403, metav1.StatusReasonForbidden, forbidden, nil)
		}, "get log of pod research/llama-worker-0: " + forbidden, `resources: ["pods/log"]`},
		"404 on logs": {func(s *kubetest.Server) { // the operator has deleted the pod since
			job(s)
			pods(s)
			s.Refuse("GET "+podsPath+"/llama-worker-0/log", 404, metav1.StatusReasonNotFound, `pods "llama-worker-0" not found`, &metav1.StatusDetails{Name: "llama-worker-0", Kind: "pods"})
		}, "get log of pod research/llama-worker-0: not found", "gangctl events llama -n research"},
		"500 on logs": {func(s *kubetest.Server) {
			job(s)
			pods(s)
			s.Refuse("GET "+podsPath+"/llama-worker-0/log", 500, metav1.StatusReasonInternalError, "the node is away", nil)
		}, "get log of pod research/llama-worker-0: the node is away", "try again"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			tt.prepare(s)
			stdout, _, failed := run(t, s.Client, 0, "llama")
			if stdout != "" || failed == nil || failed.Message != tt.message || !strings.Contains(failed.Hint, tt.hint) || failed.Code != failure.CodeError {
				t.Errorf("got %+v, %q", failed, stdout)
			}
		})
	}
	for want, client := range kubetest.Away(t) {
		for _, args := range []string{"llama", "llama -f"} {
			stdout, _, failed := run(t, client, 0, strings.Fields(args)...)
			if stdout != "" || failed == nil || !strings.Contains(failed.Message, want) || failed.Hint == "" {
				t.Errorf("%s: got %+v, %q", args, failed, stdout)
			}
		}
	}
}

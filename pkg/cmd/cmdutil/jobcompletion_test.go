package cmdutil

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/gang"
)

const jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"

// completions requests completions of prefix after args.
func completions(t *testing.T, s *kubetest.Server, max int, args []string, prefix string) []string {
	t.Helper()
	f := &Factory{Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	names, directive := CompleteJobs(f, max)(cmd, args, prefix)
	if directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("files were offered as names of jobs: %v", directive)
	}
	return names
}

func TestCompleteJobs(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "mistral", 1), kubetest.Job("research", "llama-2", 1), kubetest.Job("research", "llama-1", 1)))
	tests := []struct {
		max    int
		args   []string
		prefix string
		want   []string
	}{
		{0, nil, "", []string{"llama-1", "llama-2", "mistral"}},
		{0, nil, "ll", []string{"llama-1", "llama-2"}},
		{0, []string{"llama-1"}, "", []string{"llama-2", "mistral"}},
		{1, []string{"llama-1"}, "", nil},
		{0, nil, "x", nil},
		{0, nil, "tfjob/", []string{"tfjob/llama-1", "tfjob/llama-2", "tfjob/mistral"}},
		{0, nil, "job/m", []string{"job/mistral"}},
		{0, []string{"tfjob/llama-1"}, "tfjob/ll", []string{"tfjob/llama-2"}},
		{0, nil, "pytorchjob/", nil},
		{0, nil, "deployment/", nil},
	}
	for _, tt := range tests {
		if got := completions(t, s, tt.max, tt.args, tt.prefix); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

// With the pods, names have states.
func TestCompleteJobStates(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "mistral", 1), kubetest.Job("research", "llama", 1)))
	s.Answer("GET /api/v1/namespaces/research/pods", 200, kubetest.PodList(kubetest.Pod("research", "llama", 0, "n1", ""), kubetest.Pod("research", "mistral", 0, "", "no")))
	if got, want := completions(t, s, 0, nil, ""), []string{"llama\tRunning", "mistral\tPending"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompleteRoles(t *testing.T) {
	s := kubetest.New(t)
	job := kubetest.Job("research", "llama", 2)
	job.Spec.TFReplicaSpecs[kubeflowv1.TFJobReplicaTypePS] = job.Spec.TFReplicaSpecs[kubeflowv1.TFJobReplicaTypeWorker].DeepCopy()
	job.Spec.TFReplicaSpecs[kubeflowv1.TFJobReplicaTypePS].Replicas = nil
	s.Answer("GET "+jobsPath+"/llama", 200, job)
	f := &Factory{Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	for _, tt := range []struct {
		args   []string
		prefix string
		want   []string
	}{
		{[]string{"llama"}, "", []string{"ps\t1 member", "worker\t2 members"}},
		{[]string{"llama"}, "ps,w", []string{"ps,worker\t2 members"}},
		{nil, "", nil},
		{[]string{"mistral"}, "", nil},
	} {
		if got, _ := CompleteRoles(f)(cmd, tt.args, tt.prefix); !slices.Equal(got, tt.want) {
			t.Errorf("%q, %q: got %q", tt.args, tt.prefix, got)
		}
	}
	if got, _ := CompleteIndexes(f)(cmd, []string{"llama"}, ""); !slices.Equal(got, []string{"0\tps, worker", "1\tworker"}) {
		t.Errorf("indexes: got %q", got)
	}
}

// What a command refuses is not offered.
func TestCompleteJobsThatItTakes(t *testing.T) {
	s := kubetest.New(t)
	suspended := kubetest.Job("research", "mistral", 1)
	suspended.Spec.RunPolicy.Suspend = new(true)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", suspended, kubetest.Job("research", "llama", 1)))
	f := &Factory{Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	if got, _ := CompleteJobs(f, 0, func(job *gang.Job) bool { return job.Suspended })(cmd, nil, ""); !slices.Equal(got, []string{"mistral"}) {
		t.Errorf("got %q", got)
	}
}

func TestCompleteJobsIsBounded(t *testing.T) {
	s := kubetest.New(t)
	var jobs []*kubeflowv1.TFJob
	for i := range 250 {
		jobs = append(jobs, kubetest.Job("research", fmt.Sprintf("job-%03d", i), 1))
	}
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", jobs...))
	if got := completions(t, s, 0, nil, "job"); len(got) != maxCompletions || got[0] != "job-000" {
		t.Errorf("got %d, from %q", len(got), got[0])
	}
}

func TestCompleteJobsIsSilent(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("GET "+jobsPath, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if got := completions(t, s, 0, nil, ""); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestSimilarJobs(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "mistral", 1), kubetest.Job("research", "llama-2", 1), kubetest.Job("research", "my-llama", 1)))
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"llama": {"llama-2", "my-llama"}, "mis": {"mistral"}, "zephyr": nil, "lla-3": {"llama-2"}} {
		if got := similarJobs(t.Context(), client, "research", name); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

package cmdutil

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// Every command gives the same text and the same hint for a name that fits no job, or several.
func TestExplainName(t *testing.T) {
	var same []*gang.Job
	for _, reader := range kind.Readers()[:3] {
		job := &gang.Job{Reader: reader, Kind: reader.WithVersion("v1")}
		job.Meta.Namespace, job.Meta.Name = "research", "llama"
		same = append(same, job)
	}
	for name, tt := range map[string]struct {
		err           error
		message, hint string
		code          failure.Code
	}{
		"a slip":            {&gang.JobNotFoundError{Namespace: "research", Name: "lama", Nearest: []string{"llama", "llama-2"}}, "get job research/lama: not found", "did you mean llama or llama-2?", failure.CodeError},
		"another namespace": {&gang.JobNotFoundError{Kind: "TFJob", Namespace: "research", Name: "llama", Elsewhere: []string{"other", "team"}}, "get TFJob research/llama: not found", "there is one in namespace other, team: add -n other", failure.CodeError},
		"nowhere":           {&gang.JobNotFoundError{Kind: "pod", Namespace: "research", Name: "llama"}, "get pod research/llama: not found", "see the jobs of every namespace with `gangctl list -A`, or choose one with -n", failure.CodeError},
		"not all is visible": {&gang.JobNotFoundError{Namespace: "research", Name: "lama", Nearest: []string{"llama"}, Unreadable: []string{"MPIJobs", "Jobs"}},
			"get job research/lama: not found; you may not look for it among MPIJobs, Jobs", "did you mean llama?", failure.CodeError},
		"two kinds":   {&gang.AmbiguousJobError{Jobs: same[:2]}, "research/llama is the name of several jobs: TFJob, PyTorchJob", "name one: tfjob/llama or pytorchjob/llama", failure.CodeUsage},
		"three kinds": {&gang.AmbiguousJobError{Jobs: same}, "research/llama is the name of several jobs: TFJob, PyTorchJob, MPIJob", "name one: tfjob/llama or pytorchjob/llama or mpijob/llama", failure.CodeUsage},
	} {
		got := failure.From(ExplainName(fmt.Errorf("%w", tt.err), ""))
		if got.Message != tt.message || got.Hint != tt.hint || got.Code != tt.code || !errors.Is(got, tt.err) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	other := errors.New("etcd")
	if got := ExplainName(other, ""); got != other { //nolint:errorlint // the very same
		t.Errorf("got %v", got)
	}
	missing := &gang.JobNotFoundError{Namespace: "research", Name: "llama"}
	if got := failure.From(ExplainName(missing, "a b.yaml")); got.Hint != "see the jobs in the file with `gangctl top job -A --from 'a b.yaml'`, or choose a namespace of it with -n" {
		t.Errorf("in a file: %s", got.Hint)
	}
}

// Where a job may be one that the caller may not read, the rule that is missing comes first.
func TestUnreadableKind(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /apis/kubeflow.org/v1", 200, metav1.APIResourceList{GroupVersion: "kubeflow.org/v1", APIResources: []metav1.APIResource{{Name: "tfjobs", Kind: "TFJob"}}})
	at := "GET /apis/kubeflow.org/v1/namespaces/research/"
	s.Refuse(at+"tfjobs/llama", 403, metav1.StatusReasonForbidden, `User "bob" cannot get resource "tfjobs"`, &metav1.StatusDetails{Name: "llama"})
	s.Refuse(at+"mpijobs/llama", 403, metav1.StatusReasonForbidden, `User "bob" cannot get resource "mpijobs"`, &metav1.StatusDetails{Name: "llama"})
	s.Refuse(at+"pytorchjobs/llama", 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "llama"})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReadJob(t.Context(), client, "research", "llama")
	got := failure.From(failure.NeedingVerb(err, "delete"))
	const rules = `ask an administrator for these rules in a Role in namespace research, bound to user "bob":
  - apiGroups: ["kubeflow.org"]
    resources: ["tfjobs"]
    verbs: ["get"]
  - apiGroups: ["kubeflow.org"]
    resources: ["tfjobs"]
    verbs: ["delete"]`
	if got == nil || got.Message != "get job research/llama: not found; you may not look for it among TFJobs, MPIJobs" || got.Hint != rules {
		t.Errorf("got %+v", got)
	}
}

// KIND NAME, as kubectl has it, is answered with how it is written here.
func TestKindAndName(t *testing.T) {
	for args, want := range map[string]string{"tfjob llama": "a kind and a name are one argument: get tfjob/llama", "job llama": "a kind and a name are one argument: get job/llama", "a b": "for all jobs: gangctl list", "": "for all jobs: gangctl list"} {
		cmd := &cobra.Command{Use: "get"}
		(&JobOptions{}).Bind(cmd, &Factory{}, nil, nil)
		if got := failure.From(cmd.Args(cmd, strings.Fields(args))); got == nil || got.Hint != want {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}

// A command about several jobs does none of them where the first name is a kind: each name would be that of a job.
func TestKindAndNames(t *testing.T) {
	for args, want := range map[string]string{
		"job llama": "a kind and a name are one argument: delete job/llama; a job that is called so is job/job", "tfjob llama mistral": "a kind and a name are one argument: delete tfjob/llama tfjob/mistral; a job that is called so is job/tfjob",
		"jobs llama": "a kind and a name are one argument: delete jobs/llama; a job that is called so is job/jobs", "": "see them with `gangctl list`", "job": "", "llama job": "", "job/llama mistral": "",
	} {
		got := failure.From(SeveralJobs(&cobra.Command{Use: "delete"}, strings.Fields(args)))
		if got == nil && want != "" || got != nil && (got.Hint != want || got.Code != failure.CodeUsage) {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}

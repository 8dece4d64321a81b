package cmdutil

import (
	"errors"
	"fmt"
	"testing"

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
		got := failure.From(ExplainName(fmt.Errorf("%w", tt.err)))
		if got.Message != tt.message || got.Hint != tt.hint || got.Code != tt.code || !errors.Is(got, tt.err) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	other := errors.New("etcd")
	if got := ExplainName(other); got != other { //nolint:errorlint // the very same
		t.Errorf("got %v", got)
	}
}

package root

import (
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// full is a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A command whose output cannot be written has failed, whichever way it prints.
func TestLostOutputIsAnError(t *testing.T) {
	const jobs, pods = "/apis/kubeflow.org/v1/namespaces/default/tfjobs", "/api/v1/namespaces/default/pods"
	job := kubetest.Job("default", "llama", 1)
	for _, args := range []string{
		"--help", "help list", "version", "completion bash", "list", "list -o json", "list -o name", "list -o custom-columns=N:metadata.name",
		"get llama", "get llama -o yaml", "delete llama --wait=false", "resume llama",
		"submit tf llama --image i --dialect none", "submit tf llama --image i --dry-run=client", "submit tf llama --image i --dry-run=client -o yaml",
	} {
		t.Run(args, func(t *testing.T) {
			s := kubetest.New(t)
			s.Answer("GET "+jobs, 200, kubetest.JobList("", job))
			s.Answer("GET "+jobs+"/llama", 200, job)
			s.Answer("POST "+jobs, 201, job)
			s.Answer("DELETE "+jobs+"/llama", 200, &metav1.Status{Status: metav1.StatusSuccess})
			s.Answer("GET "+pods, 200, kubetest.PodList(kubetest.Pod("default", "llama", 0, "node-1", "")))
			_, f, output := newRoot(t)
			f.Args, f.Client = strings.Fields(args), s.Client
			f.Namespace = func() (string, error) { return "default", nil }
			f.IO.SetOut(full{})
			code := Execute(t.Context(), f, NewCommand(f))
			_, stderr := output()
			lost := strings.Contains(stderr, "error: write standard output: no space left on device\n") ||
				strings.Contains(stderr, "error: TFJob default/llama was created, but could not be shown: write standard output: no space left on device\nhint: ")
			if code != failure.CodeError || !lost || strings.Count(stderr, "error:") != 1 {
				t.Errorf("got %d, %s", code, stderr)
			}
		})
	}
}

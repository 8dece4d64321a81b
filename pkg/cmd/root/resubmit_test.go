package root

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// A job is submitted again through the very tree in which it was submitted.
func TestResubmitRunsSubmit(t *testing.T) {
	s := kubetest.New(t)
	job := kubetest.Job("research", "llama", 1)
	job.Annotations = map[string]string{"gangctl.dev/command": "gangctl submit tf llama --image i --workers 3 -- python 'a b'"}
	s.Answer("GET /apis/kubeflow.org/v1/namespaces/research/tfjobs/llama", 200, job)
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: io, Args: strings.Fields("resubmit llama --name b --dry-run=client -o yaml"), Getenv: func(string) string { return "" },
		Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	if code := Execute(t.Context(), f, NewCommand(f)); code != failure.CodeOK {
		t.Fatalf("%d: %s", code, errOut)
	}
	for _, want := range []string{"name: b\n", "replicas: 3", "- a b\n", "gangctl submit tf b --image i --workers 3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The help has them where the commands of jobs are.
func TestHelp(t *testing.T) {
	io, _, out, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: io, Args: []string{"--help"}, Getenv: func(string) string { return "" }, Client: func() (*kube.Client, error) { panic("a client is created") }}
	if code := Execute(t.Context(), f, NewCommand(f)); code != failure.CodeOK {
		t.Fatal(code)
	}
	jobs, _, _ := strings.Cut(out.String(), "Cluster:")
	for _, name := range []string{"\n  fit ", "\n  resubmit ", "\n  submit "} {
		if !strings.Contains(jobs, name) {
			t.Errorf("no %q in\n%s", name, jobs)
		}
	}
}

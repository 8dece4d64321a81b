package get

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

const (
	jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	podsPath = "/api/v1/namespaces/research/pods"
)

// run runs the command line against the server, five minutes after the objects were made.
func run(t *testing.T, s *kubetest.Server, color iostreams.ColorMode, args ...string) (stdout string, err error) {
	t.Helper()
	f, streams := commandtest.Factory("research", kubetest.Created.Add(5*time.Minute), 0, s.Client)
	f.IO.SetColor(color)
	err = commandtest.Execute(t.Context(), NewCommand(f, nil), args...)
	return streams.Out.String(), err
}

func TestGet(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 3))
	s.Answer("GET "+podsPath, 200, kubetest.PodList(kubetest.Pod("research", "llama", 1, "", "0/4 nodes are available"), kubetest.Pod("research", "llama", 0, "n1", "")))
	const want = `Name:      research/llama
Kind:      TFJob
State:     Degraded
Ready:     1/3
Gang:      3 of 3 members start together (scheduler-plugins)
Scheduler: gang-scheduler
GPUs:      6
Age:       5m
Reason:    worker-1: 0/4 nodes are available

MEMBER     POD              STATE     NODE   GPUS   AGE   REASON
worker-0   llama-worker-0   Running   n1     2      5m
worker-1   llama-worker-1   Pending   -      2      5m    0/4 nodes are available
worker-2   -                Missing   -      2      -     no pod
`
	stdout, err := run(t, s, iostreams.ColorAuto, "llama")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET " + jobsPath + "/llama", "GET /apis/scheduling.x-k8s.io", "GET /apis/scheduling.sigs.k8s.io", "GET " + podsPath + "?labelSelector=training.kubeflow.org%2Fjob-name%3Dllama&limit=500&resourceVersion=0"}, s.AboutTFJobs()); diff != "" {
		t.Errorf("requests: %s", diff)
	}
	if stdout, err := run(t, s, iostreams.ColorAlways, "llama"); err != nil || !strings.Contains(stdout, "\x1b[1;31mDegraded\x1b[0m\n") {
		t.Errorf("with colour: %v\n%s", err, stdout)
	}
	if stdout, err := run(t, s, iostreams.ColorAuto, "llama", "-o", "yaml"); err != nil || !strings.HasPrefix(stdout, "apiVersion: kubeflow.org/v1\nkind: TFJob\n") {
		t.Errorf("as stored: %v\n%s", err, stdout)
	}
	if stdout, err := run(t, s, iostreams.ColorAuto, "llama", "--no-headers", "-o", "wide"); err != nil || !strings.HasPrefix(stdout, "worker-0   llama-worker-0   Running   n1    2     5m    10.0.0.1") {
		t.Errorf("wide, no headers: %v\n%s", err, stdout)
	}
}

func TestNotFound(t *testing.T) {
	missing := func(s *kubetest.Server, name string) {
		s.Refuse("GET "+jobsPath+"/"+name, 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: name, Kind: "tfjobs"})
	}
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama-2", 1), kubetest.Job("research", "mistral", 1)))
	missing(s, "llama")
	missing(s, "zephyr")
	for name, hint := range map[string]string{"llama": "did you mean llama-2?", "zephyr": "see the jobs of every namespace with `gangctl list -A`, or choose one with -n"} {
		_, err := run(t, s, iostreams.ColorAuto, name)
		got := failure.From(err)
		if got == nil || got.Message != "get job research/"+name+": not found" || got.Hint != hint {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	s.Refuse("GET /api/v1/namespaces/research", 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "research", Kind: "namespaces"})
	if _, err := run(t, s, iostreams.ColorAuto, "zephyr"); err == nil || failure.From(err).Hint != "there is no namespace research: choose another one with -n" {
		t.Errorf("got %+v", failure.From(err))
	}
}

package resubmit

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"

// ran is what resubmit has gangctl do: its words, and what is on standard input.
type ran struct{ words, input string }

// run resubmits; what it has gangctl do is caught.
func run(t *testing.T, s *kubetest.Server, args ...string) (did ran, stderr string, failed *failure.Error) {
	t.Helper()
	streams, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(kubetest.Created.Time))
	f := &cmdutil.Factory{IO: streams, Client: s.Client, Namespace: func() (string, error) { return "research", nil }, Suffix: func() string { return "abcde" }}
	cmd := NewCommand(f, func(f *cmdutil.Factory) *cobra.Command {
		return &cobra.Command{RunE: func(*cobra.Command, []string) error {
			did.words = shell.Join(f.Args...)
			if buffer, ok := f.IO.In.(*bytes.Buffer); ok {
				text, err := io.ReadAll(buffer)
				did.input = string(text)
				return err
			}
			return nil
		}}
	}, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	failed = failure.From(cmd.ExecuteContext(t.Context()))
	return did, errOut.String(), failed
}

// The command line is repeated word for word, but for the name, what was for that one run, and what is changed.
func TestCommandLine(t *testing.T) {
	for _, tt := range []struct{ kept, args, want string }{
		{"gangctl submit tf llama --image i --workers 2 -- python 'my train.py' --name x", "--name llama-2",
			"submit tf llama-2 --image i --workers 2 --namespace=research -- python 'my train.py' --name x"},
		{"gangctl submit tf --image i -n research", "", "submit tf --image i --namespace=research"},
		{"gangctl submit tf --image i --name=llama -- a", "--name b", "submit tf --image i --name=b --namespace=research -- a"},
		{"gangctl submit tf --name llama --image i", "--name b", "submit tf --name=b --image i --namespace=research"},
		{"gangctl submit tf --image i", "--name b", "submit tf --image i --name=b --namespace=research"},
		{"gangctl submit tf llama --image i --wait --timeout 5m -o yaml --dry-run=none", "--name b", "submit tf b --image i --namespace=research"},
		{"gangctl submit pytorch llama --image i", "--name b --wait=done --timeout 1h", "submit pytorch b --image i --namespace=research --wait=done --timeout=1h0m0s"},
		{"gangctl submit tf llama --image i -- x", "--name b --set spec.successPolicy=AllWorkers", "submit tf b --image i --namespace=research --set=spec.successPolicy=AllWorkers -- x"},
	} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Annotations = map[string]string{"gangctl.dev/command": tt.kept}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		did, _, failed := run(t, s, append([]string{"llama"}, strings.Fields(tt.args)...)...)
		if failed != nil || did.words != tt.want || did.input != "" {
			t.Errorf("%s, %s:\ngot  %s, %v\nwant %s", tt.kept, tt.args, did.words, failed, tt.want)
		}
	}
}

// A name is taken as long as its job is there, and what to do is told.
func TestTaken(t *testing.T) {
	for _, annotation := range []string{"gangctl submit tf llama --image i", "gangctl submit -f job.yaml", ""} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Annotations = map[string]string{"gangctl.dev/command": annotation}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		did, _, failed := run(t, s, "llama")
		if failed == nil || failed.Code != failure.CodeError || failed.Message != "resubmit TFJob research/llama: it still runs, and no other job can have its name" ||
			!strings.Contains(failed.Hint, "--name llama-2") || did.words != "" {
			t.Errorf("%q: got %+v, %+v", annotation, failed, did)
		}
	}
	for name, want := range map[string]string{"llama": "llama-2", "llama-2": "llama-3", "a-b": "a-b-2", "x-09": "x-09-2", "j-123456789": "j-123456789-2"} {
		if got := next(name); got != want {
			t.Errorf("after %s comes %s, want %s", name, got, want)
		}
	}
}

// A job of others is a file without what the cluster wrote, in a gang of its own.
func TestManifest(t *testing.T) {
	s := kubetest.New(t)
	job := kubetest.Job("research", "llama", 2)
	job.UID, job.ResourceVersion, job.Generation = "u", "7", 3
	job.Finalizers = []string{"f"}
	job.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "vision"}
	s.Answer("GET "+jobsPath+"/llama", 200, job)
	did, _, failed := run(t, s, "llama", "--name", "b", "--set", "spec.tfReplicaSpecs.Worker.replicas=8", "--set", "spec.runPolicy.backoffLimit=1", "--dry-run=client")
	if failed != nil || did.words != "submit -f - --namespace=research --dry-run=client" {
		t.Fatalf("got %+v, %+v", did, failed)
	}
	got := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(did.input), &got.Object); err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(got.Object, "spec", "tfReplicaSpecs", "Worker", "replicas")
	labels, _, _ := unstructured.NestedMap(got.Object, "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "labels")
	if got.GetName() != "b" || got.GetUID() != "" || got.GetResourceVersion() != "" || got.GetFinalizers() != nil || got.Object["status"] != nil ||
		len(got.GetAnnotations()) != 1 || replicas != float64(8) && replicas != int64(8) || labels["scheduling.x-k8s.io/pod-group"] != nil {
		t.Errorf("got\n%s", did.input)
	}
	if _, _, failed := run(t, s, "llama", "--name", "b", "--set", "spec.tfReplicaSpecs.Worker.replica=8"); failed == nil || failed.Code != failure.CodeUsage ||
		failed.Message != "--set spec.tfReplicaSpecs.Worker.replica: there is no such field; did you mean replicas?" {
		t.Errorf("got %+v", failed)
	}
}

func TestWord(t *testing.T) {
	for set, want := range map[string]string{
		"spec.tfReplicaSpecs.Worker.replicas=8":      "--workers=8",
		"spec.tfReplicaSpecs.PS.replicas=2":          "--ps=2",
		"spec.tfReplicaSpecs.Chief.replicas=1":       "--chief=1",
		"spec.tfReplicaSpecs.Evaluator.replicas=1":   "--evaluator=1",
		"spec.mpiReplicaSpecs.Worker.replicas=4":     "--workers=4",
		"spec.pytorchReplicaSpecs.Worker.replicas=3": "--workers=4",
		"spec.parallelism=6":                         "--workers=6",
		"spec.tfReplicaSpecs.Worker.replicas=many":   "--set=spec.tfReplicaSpecs.Worker.replicas=many",
		"spec.successPolicy=AllWorkers":              "--set=spec.successPolicy=AllWorkers",
	} {
		if got := argument(set); got != want {
			t.Errorf("%s: got %s, want %s", set, got, want)
		}
	}
}

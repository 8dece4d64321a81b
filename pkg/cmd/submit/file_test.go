package submit

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// jobFile is a job without a gang.
const jobFile = `apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: llama}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: tensorflow, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]
`

const groupFile = `---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: mine}
spec: {minMember: 2, minResources: {nvidia.com/gpu: 16}}
`

// file writes a file for the test.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// typeLine types `gangctl LINE` in namespace research, with the connection flags of a real root.
func typeLine(ctx context.Context, client func() (*kube.Client, error), stdin string, args ...string) (stdout, stderr string, failed *failure.Error) {
	streams, in, out, errOut := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	in.WriteString(stdin)
	root := &cobra.Command{Use: "gangctl", SilenceErrors: true, SilenceUsage: true}
	cluster := kube.NewFactory("test", io.Discard)
	cluster.AddFlags(root.PersistentFlags())
	f := &cmdutil.Factory{IO: streams, Args: args, Suffix: func() string { return "abcde" }, Client: client, Namespace: func() (string, error) {
		if n := root.PersistentFlags().Lookup("namespace"); n.Changed {
			return n.Value.String(), nil
		}
		return "research", nil
	}}
	root.AddCommand(NewCommand(f))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return out.String(), errOut.String(), failure.From(err)
}

func noCluster() (*kube.Client, error) { panic("a client is created") }

// rendered are the objects that -o yaml shows.
func rendered(t *testing.T, text string) (job, group map[string]any) {
	t.Helper()
	docs := strings.Split(text, "---\n")
	if err := yaml.Unmarshal([]byte(docs[0]), &job); err != nil {
		t.Fatal(err)
	}
	if len(docs) > 1 {
		if err := yaml.Unmarshal([]byte(docs[1]), &group); err != nil {
			t.Fatal(err)
		}
	}
	return job, group
}

func at(t *testing.T, obj map[string]any, path ...string) any {
	t.Helper()
	var value any = obj
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("no %s in %v", strings.Join(path, "."), obj)
		}
		value = m[key]
	}
	return value
}

// What is missing to be a gang is added, whichever way the file comes.
func TestFileBecomesAGang(t *testing.T) {
	path := file(t, jobFile)
	for name, args := range map[string][]string{
		"submit": {"submit", "-f", path}, "submit tf": {"submit", "tf", "-f", path}, "standard input": {"submit", "--filename=-"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, failed := typeLine(t.Context(), noCluster, jobFile, append(args, "--dry-run=client", "-o", "yaml")...)
			if failed != nil || errOut != "" {
				t.Fatalf("got %v, %s", failed, errOut)
			}
			job, group := rendered(t, out)
			template := at(t, job, "spec", "tfReplicaSpecs", "Worker", "template").(map[string]any)
			if at(t, template, "spec", "schedulerName") != "gang-scheduler" || at(t, template, "metadata", "labels", "scheduling.x-k8s.io/pod-group") != "llama" {
				t.Errorf("template: %v", template)
			}
			if at(t, group, "metadata", "name") != "llama" || at(t, group, "metadata", "namespace") != "research" || at(t, group, "spec", "minMember") != 2.0 {
				t.Errorf("group: %v", group)
			}
			want := "gangctl " + strings.Join(args, " ") + " --dry-run=client -o yaml"
			if got := at(t, job, "metadata", "annotations", "gangctl.dev/command"); got != want {
				t.Errorf("the job keeps %q, want %q", got, want)
			}
		})
	}
}

// Several files are one submission; an error names its file.
func TestSeveralFiles(t *testing.T) {
	first, other := file(t, jobFile), file(t, strings.ReplaceAll(jobFile, "llama", "bert"))
	out, _, failed := typeLine(t.Context(), noCluster, jobFile, "submit", "-f", first, "--filename", other, "--dry-run=client", "-o", "name")
	if failed != nil || !strings.Contains(out, "/llama\n") || !strings.Contains(out, "/bert\n") {
		t.Errorf("got %v, %q", failed, out)
	}
	settings := file(t, settingsFile)
	if out, _, failed := typeLine(t.Context(), noCluster, "", "submit", "-f", settings, "-f", first, "--dry-run=client", "-o", "name"); failed != nil || !strings.Contains(out, "configmap/settings") {
		t.Errorf("got %v, %q", failed, out)
	}
	broken := file(t, "kind: [\n")
	if _, _, failed := typeLine(t.Context(), noCluster, "", "submit", "-f", first, "-f", broken, "--dry-run=client"); failed == nil || !strings.HasPrefix(failed.Message, broken+": document 1, line 1: ") {
		t.Errorf("got %v", failed)
	}
	if _, _, failed := typeLine(t.Context(), noCluster, "", "submit", "-f", first, "-f", first, "--dry-run=client"); failed == nil || failed.Code != failure.CodeUsage {
		t.Errorf("got %v", failed)
	}
}

func TestFileDetails(t *testing.T) {
	tests := map[string]struct {
		text  string
		flags string
		check func(t *testing.T, job, group map[string]any, stderr string)
	}{
		"its PodGroup counts": {jobFile + groupFile, "", func(t *testing.T, job, group map[string]any, _ string) {
			if at(t, job, "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "labels", "scheduling.x-k8s.io/pod-group") != "mine" || at(t, group, "metadata", "name") != "mine" {
				t.Errorf("got %v\n%v", job, group)
			}
		}},
		"its namespace counts": {strings.Replace(jobFile, "{name: llama}", "{name: llama, namespace: ml}", 1), "", func(t *testing.T, job, group map[string]any, _ string) {
			if at(t, job, "metadata", "namespace") != "ml" || at(t, group, "metadata", "namespace") != "ml" {
				t.Errorf("got %v\n%v", job, group)
			}
		}},
		"the same namespace is no contradiction": {strings.Replace(jobFile, "{name: llama}", "{name: llama, namespace: ml}", 1), "-n ml", func(*testing.T, map[string]any, map[string]any, string) {}},
		"a name is generated": {strings.Replace(jobFile, "{name: llama}", "{generateName: llama-}", 1), "", func(t *testing.T, job, group map[string]any, _ string) {
			if at(t, job, "metadata", "name") != "llama-abcde" || at(t, group, "metadata", "name") != "llama-abcde" || at(t, job, "metadata", "generateName") != nil {
				t.Errorf("got %v\n%v", job, group)
			}
		}},
		"flags set how the gang is scheduled": {jobFile, "--scheduler mine --dialect labels --min-available 1", func(t *testing.T, job, group map[string]any, _ string) {
			template := at(t, job, "spec", "tfReplicaSpecs", "Worker", "template").(map[string]any)
			if group != nil || at(t, template, "spec", "schedulerName") != "mine" || at(t, template, "metadata", "labels", "pod-group.scheduling.sigs.k8s.io/min-available") != "1" {
				t.Errorf("got %v\n%v", job, group)
			}
		}},
		"no gang, if that is requested": {jobFile, "--dialect none", func(t *testing.T, job, group map[string]any, _ string) {
			if group != nil || at(t, job, "spec", "tfReplicaSpecs", "Worker", "template", "spec", "schedulerName") != nil {
				t.Errorf("got %v\n%v", job, group)
			}
		}},
		"what servers write is left out, and reported": {strings.Replace(jobFile, "{name: llama}", "{name: llama, uid: u}", 1) + "status: {startTime: '2026-11-21T14:00:00Z'}\n", "", func(t *testing.T, job, _ map[string]any, stderr string) {
			if job["status"] != nil || stderr != "note: left out what only API servers write: metadata.uid, status\n" {
				t.Errorf("got %v\n%s", job, stderr)
			}
		}},
		"a group reference without its object gets one": {strings.Replace(jobFile, "        spec:\n", "        metadata: {annotations: {scheduling.k8s.io/group-name: g}}\n        spec:\n", 1), "", func(t *testing.T, job, group map[string]any, stderr string) {
			marks := at(t, job, "spec", "tfReplicaSpecs", "Worker", "template", "metadata")
			if at(t, group, "metadata", "name") != "g" || at(t, marks.(map[string]any), "annotations", "scheduling.k8s.io/group-name") != "g" || stderr != "" {
				t.Errorf("got %v\n%s", group, stderr)
			}
		}},
		"a gang of KAI is left alone": {strings.Replace(jobFile, "        spec:\n", "        metadata: {annotations: {pod-group-name: g}}\n        spec:\n", 1), "", func(t *testing.T, _, group map[string]any, stderr string) {
			if group != nil || stderr != "note: the file declares gang g in dialect kai itself: nothing is added\n" {
				t.Errorf("got %v\n%s", group, stderr)
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"submit", "-f", file(t, tt.text), "--dry-run=client", "-o", "yaml"}, strings.Fields(tt.flags)...)
			out, errOut, failed := typeLine(t.Context(), noCluster, "", args...)
			if failed != nil {
				t.Fatal(failed)
			}
			job, group := rendered(t, out)
			tt.check(t, job, group, errOut)
		})
	}
}

// A file is created as flags are: the PodGroup is rehearsed first, the job owns it, and what fails leaves nothing.
func TestFileIsCreated(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	out, errOut, failed := typeLine(t.Context(), s.Client, "", "submit", "-f", file(t, jobFile+groupFile))
	if failed != nil || errOut != "" || out != "tfjob.kubeflow.org/llama created\npodgroup.scheduling.x-k8s.io/mine created\n" {
		t.Fatalf("got %v, %q, %q", failed, out, errOut)
	}
	if body := s.Body(4); !strings.Contains(body, `"ownerReferences":[{"apiVersion":"kubeflow.org/v1","blockOwnerDeletion":false,"kind":"TFJob","name":"llama","uid":"uid-1"}]`) {
		t.Errorf("the PodGroup is not owned by the job: %s", body)
	}
}

// What names a job of the file as its owner is created after that, and goes with it: the uid that it had is another's.
func TestFileOwnsObjects(t *testing.T) {
	s := serving(t, nil)
	owned := strings.Replace(settingsFile, "{name: settings}", "{name: settings, ownerReferences: [{apiVersion: kubeflow.org/v1, kind: TFJob, name: llama, uid: gone}]}", 1)
	out, errOut, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+owned+strings.Replace(settingsFile, "name: settings", "name: more", 1)))
	if failed != nil || errOut != "" || out != "configmap/more created\ntfjob.kubeflow.org/llama created\npodgroup.scheduling.x-k8s.io/llama created\nconfigmap/settings created\n" {
		t.Fatalf("got %v, %q, %q", failed, out, errOut)
	}
	requests := s.Requests()
	if body := s.Body(len(requests) - 1); !strings.Contains(body, `"name":"settings"`) || !strings.Contains(body, `"ownerReferences":[{"apiVersion":"kubeflow.org/v1","blockOwnerDeletion":false,"kind":"TFJob","name":"llama","uid":"uid-llama"}]`) {
		t.Errorf("got %s", body)
	}
}

func TestFileIsRolledBack(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.HandleFunc("POST "+groupsPath, afterRehearsal(409, metav1.StatusReasonAlreadyExists, `x "mine" already exists`, &metav1.StatusDetails{Name: "mine", Kind: "podgroups"}))
	s.Answer("DELETE "+jobsPath+"/llama", 200, &metav1.Status{Status: metav1.StatusSuccess})
	_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "-f", file(t, jobFile+groupFile))
	if failed == nil || failed.Message != `create PodGroup research/mine: x "mine" already exists; TFJob research/llama was deleted again` || !strings.Contains(failed.Hint, "podgroups.scheduling.x-k8s.io mine") {
		t.Errorf("got %+v", failed)
	}
}

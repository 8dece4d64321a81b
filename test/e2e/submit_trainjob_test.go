package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/sandbox/crd"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// TestTrainJob has the controllers of Kubeflow Trainer and of JobSet, as they are released, with their webhooks and the runtimes that
// Trainer ships, make the pods of a gang.
func TestTrainJob(t *testing.T) {
	module, c := moduleOf(t, "trainer"), newCluster(t, withControllers(t, "trainer", "--nodes=3", "--cpu=16", "--gpus=8", "--operator=false", "--volumes", "--serve=volcano")...)
	t.Run("refused", func(t *testing.T) { c.refusesTrainJobs(t) })
	t.Run("a launcher that follows", func(t *testing.T) { c.launcherFollows(t) })
	t.Run("a node short, and smaller", func(t *testing.T) { c.trainJobIsMadeSmaller(t) })
	t.Run("a node short", func(t *testing.T) { c.trainJobWaits(t) })
	t.Run("the node joins", func(t *testing.T) { c.trainJobRuns(t) })
	t.Run("progress", func(t *testing.T) { c.trainJobReports(t) })
	t.Run("suspend and resume", func(t *testing.T) { c.trainJobIsSuspended(t) })
	t.Run("a member dies", func(t *testing.T) { c.losesMember(t, c.podsOf(t, "llama"), 4) })
	t.Run("to the end", func(t *testing.T) {
		c.run(t, "wait", "llama", "--for", "done", "--timeout", "2m")
		matches(t, c.run(t, "list"), `^llama +TrainJob +Succeeded`)
	})
	t.Run("delete", func(t *testing.T) { c.trainJobIsDeleted(t) })
	t.Run("a runtime with a policy", func(t *testing.T) { c.respectsRuntimes(t, module) })
	t.Run("samples", func(t *testing.T) {
		c.servesVolcano(t)
		c.applyRuntimes(t, filepath.Join(module, "examples", "flux", "flux-runtime.yaml"))
		c.samples(t, samplesIn(t, filepath.Join(module, "examples"), trainjob.Kind))
	})
}

// servesVolcano has the cluster serve PodGroups of Volcano, and Trainer see that, which looks when it starts.
func (c *cluster) servesVolcano(t *testing.T) {
	t.Helper()
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	must(t, applier.Apply(t.Context(), crd.VolcanoPodGroups()))
	must(t, applier.WaitEstablished(t.Context(), crd.VolcanoPodGroups()))
	must(t, syscall.Kill(c.Components(t)["trainer"], syscall.SIGKILL))
	eventually(t, "Trainer has ended", func(context.Context) bool {
		_, _, err := c.Run("status")
		return err != nil
	})
	if _, stderr, err := c.Run("up"); err != nil {
		t.Fatalf("up: %v\n%s", err, stderr)
	}
}

// applyRuntimes applies files with runtimes, which the controller of Trainer checks.
func (c *cluster) applyRuntimes(t *testing.T, paths ...string) {
	t.Helper()
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, applier.Apply(t.Context(), data))
	}
}

// trainJobFile writes the file of a TrainJob of four nodes, as users write it: with nothing about a gang in it.
func trainJobFile(t *testing.T, name, runtime string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s}
spec:
  runtimeRef: {name: %s}
  trainer:
    numNodes: 4
    resourcesPerNode: {requests: {cpu: 100m}, limits: {nvidia.com/gpu: 8}}
`, name, runtime), 0o600))
	return path
}

// refusesTrainJobs: what cannot be a gang is not silently none.
func (c *cluster) refusesTrainJobs(t *testing.T) {
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "train", "llama", "--runtime", "torch-distribted", "--nodes", "4")
	if code != 1 || !strings.Contains(stderr, "there is no ClusterTrainingRuntime torch-distribted\nhint: did you mean torch-distributed? the runtimes of the cluster are: deepspeed-distributed, jax-distributed, ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// launcherFollows: a launcher that is made when its nodes are ready is a gang of its own.
func (c *cluster) launcherFollows(t *testing.T) {
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", trainJobFile(t, "deep", "deepspeed-distributed"))
	if code != 0 || !strings.Contains(stderr, "launcher starts only after node (dependsOn): each of them is a gang of its own") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	step := func(name string) podLister {
		return c.selected(t, jobset.NameLabel+"=deep,jobset.sigs.k8s.io/replicatedjob-name="+name)
	}
	step("node").are(t, "the nodes run", 3, runs)
	step("launcher").wait(t, 1, "deep-launcher")
	stdout, _, code := gangctlAt(t, c.Kubeconfig, "why-pending", "deep")
	if code < 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `^BLOCKED  deep launcher: `, "deep has 2 roles, each a gang of its own: 1 runs, and this is about launcher")
	c.node(t, "deep", "8")
	step("launcher").are(t, "the launcher runs", 1, runs)
	c.run(t, "wait", "deep", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^deep +TrainJob +Running +4/4`)
	c.run(t, "delete", "deep")
	eventually(t, "nothing is left of it", func(ctx context.Context) bool { return len(c.podsOf(t, "deep")(ctx)) == 0 })
	must(t, c.client.CoreV1().Nodes().Delete(t.Context(), "deep", now()))
}

// trainJobIsMadeSmaller: a TrainJob is made again with its runtime, which goes with it.
func (c *cluster) trainJobIsMadeSmaller(t *testing.T) {
	c.run(t, "submit", "train", "smaller", "--runtime", "torch-distributed", "--nodes", "4", "--gpus", "8", "--cpu", "100m")
	c.takesAdvice(t, "trainjob/smaller", "3 nodes instead of 4", c.podsOf(t, "smaller"), 3)
	eventually(t, "its runtime goes with it", func(ctx context.Context) bool {
		_, err := c.dynamic.Resource(trainjob.RuntimeResource(trainjob.RuntimeKind)).Namespace(space).Get(ctx, "smaller", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(c.podsOf(t, "smaller")(ctx)) == 0
	})
}

func (c *cluster) trainJobWaits(t *testing.T) {
	args := []string{"submit", "train", "llama", "--runtime", "torch-distributed", "--nodes", "4", "--gpus", "8", "--cpu", "100m"}
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, append(args, "--dry-run=fit")...)
	if code != 6 || !strings.Contains(stdout, "it needs 4 nodes with 8 GPUs each") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.run(t, append(args, "--dry-run=server")...)
	c.run(t, args...)
	c.podsOf(t, "llama").wait(t, 4, "llama")
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "llama")
	if code < 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `^BLOCKED  llama: it needs 4 nodes with 8 GPUs each, 32 in all, and the whole cluster has 24 GPUs on 3 nodes`, "pods ok 4/4")
	list := c.run(t, "list")
	matches(t, list, `^llama +TrainJob +`)
	if lines := strings.Count(strings.TrimSpace(list), "\n"); lines != 1 {
		t.Errorf("its JobSet or its Jobs are listed as jobs of their own:\n%s", list)
	}
	matches(t, c.run(t, "get", "trainjob/llama"), `node-0 .*Pending`, `node-3 .*Pending`)
}

func (c *cluster) trainJobRuns(t *testing.T) {
	c.node(t, "joins", "8")
	c.podsOf(t, "llama").are(t, "all run", 4, runs)
	c.run(t, "wait", "llama", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^llama +TrainJob +Running +4/4`)
	matches(t, c.run(t, "describe", "llama"), `TrainJob`, `node`)
	matches(t, c.run(t, "top", "job"), `llama`)
	matches(t, c.run(t, "events", "llama"), `Scheduled`)
	matches(t, c.run(t, "logs", "llama", "--tail", "1"), `node-3`)
	matches(t, c.run(t, "why-pending", "pod/"+c.podsOf(t, "llama")(t.Context())[0].Name), `llama`)
	c.run(t, "report", "llama", "-o", "json")
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "suspend", "jobset/llama")
	if code == 0 || !strings.Contains(stderr, "TrainJob llama made it, and decides whether it runs\nhint: suspend that: gangctl --kubeconfig "+c.Kubeconfig+" suspend trainjob/llama") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// trainJobReports: what a program reports of its progress is seen.
func (c *cluster) trainJobReports(t *testing.T) {
	at := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
	patch := fmt.Sprintf(`{"status":{"trainerStatus":{"progressPercentage":42,"estimatedRemainingSeconds":3600,"lastUpdatedTime":%q}}}`, at)
	_, err := c.dynamic.Resource(trainJobs()).Namespace(space).Patch(t.Context(), "llama", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	must(t, err)
	matches(t, c.run(t, "describe", "llama"), `42%.*about (59|60)m|42%.*about 1h`)
	matches(t, c.run(t, "top", "job"), `42%`)
}

func (c *cluster) trainJobIsSuspended(t *testing.T) {
	c.run(t, "suspend", "llama")
	c.podsOf(t, "llama").are(t, "its pods are gone", 0, runs)
	matches(t, c.run(t, "list"), `^llama +TrainJob +Suspended`)
	stdout, _, _ := gangctlAt(t, c.Kubeconfig, "why-pending", "llama")
	matches(t, stdout, `llama is suspended`)
	c.run(t, "resume", "llama")
	c.podsOf(t, "llama").are(t, "all run", 4, runs)
}

func (c *cluster) trainJobIsDeleted(t *testing.T) {
	c.run(t, "delete", "llama")
	gone := func(ctx context.Context, gvr schema.GroupVersionResource) bool {
		_, err := c.dynamic.Resource(gvr).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	eventually(t, "nothing is left of it", func(ctx context.Context) bool {
		return gone(ctx, trainJobs()) && gone(ctx, jobSets()) && gone(ctx, schedulerplugins.GVR()) &&
			gone(ctx, trainjob.RuntimeResource(trainjob.RuntimeKind)) && len(c.podsOf(t, "llama")(ctx)) == 0
	})
}

func trainJobs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: trainjob.Group, Version: trainjob.Version, Resource: trainjob.Resource}
}

// respectsRuntimes: a runtime that makes the gang itself gets no second group.
func (c *cluster) respectsRuntimes(t *testing.T, module string) {
	data, err := os.ReadFile(filepath.Join(module, "manifests", "base", "runtimes", "torch_distributed.yaml"))
	must(t, err)
	text := strings.Replace(strings.Replace(string(data), "name: torch-distributed", "name: torch-gang", 1), "spec:\n", "spec:\n  podGroupPolicy: {coscheduling: {}}\n", 1)
	path := filepath.Join(t.TempDir(), "runtime.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	c.applyRuntimes(t, path)
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", trainJobFile(t, "own", "torch-gang"))
	if code != 0 || strings.Contains(stdout, "podgroup") || !strings.Contains(stderr, "makes a PodGroup of every TrainJob, in dialect scheduler-plugins: no other one is added") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.podsOf(t, "own").are(t, "all run", 4, runs)
	group, err := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(t.Context(), "own", metav1.GetOptions{})
	must(t, err)
	if n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); n != 4 {
		t.Errorf("minMember is %d", n)
	}
	matches(t, c.run(t, "list"), `^own +TrainJob +Running +4/4`)
	c.run(t, "delete", "own")
}

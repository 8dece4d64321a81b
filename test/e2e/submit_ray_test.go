package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// rayCluster is a RayCluster as users write it: a head, and three workers in a group, with nothing about a gang in it. %s is its name.
const rayCluster = `apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: %s
spec:
  rayVersion: "2.46.0"
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
        - {name: ray-head, image: x, resources: {requests: {cpu: 100m}}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 3
    minReplicas: 3
    maxReplicas: 3
    rayStartParams: {}
    template:
      spec:
        containers:
        - {name: ray-worker, image: x, resources: {requests: {cpu: 100m}, limits: {nvidia.com/gpu: 8}}}
`

// TestRay has the operator of KubeRay, as it is released, make the pods of gangs. Pods are simulated, so no Ray runs in them: a RayCluster is
// tested to its end, and a RayJob until its entrypoint would be submitted.
func TestRay(t *testing.T) {
	module, c := moduleOf(t, "ray"), newCluster(t, withControllers(t, "ray", "--nodes=2", "--cpu=16", "--gpus=8", "--operator=false", "--volumes", "--serve=volcano")...)
	t.Run("a node short, and smaller", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "smaller.yaml")
		must(t, os.WriteFile(path, fmt.Appendf(nil, rayCluster, "smaller"), 0o600))
		c.run(t, "submit", "-f", path)
		c.rayPods(t).are(t, "all are refused", 4, refusedToSchedule) // KubeRay waits for minutes for pods that are gone before it saw them
		c.takesAdvice(t, "raycluster/smaller", "2 gpus instead of 3", c.rayPods(t), 3)
		c.rayIsGone(t, ray.ClusterResource, "smaller")
		c.run(t, "submit", "ray", "fewer", "--image", "x", "--workers", "3", "--gpus", "8", "--cpu", "100m", "--memory", "64Mi", "--", "python", "train.py")
		c.rayPods(t).are(t, "all are refused", 4, refusedToSchedule)
		c.takesAdvice(t, "rayjob/fewer", "2 workers instead of 3", c.rayPods(t), 3)
		c.rayIsGone(t, ray.JobResource, "fewer")
	})
	t.Run("a node short", func(t *testing.T) { c.rayWaits(t) })
	t.Run("the node joins", func(t *testing.T) { c.rayRuns(t) })
	t.Run("suspend and resume", func(t *testing.T) { c.rayIsSuspended(t) })
	t.Run("a member dies", func(t *testing.T) { c.rayLosesMember(t) })
	t.Run("delete", func(t *testing.T) { c.rayIsDeleted(t) })
	t.Run("a job", func(t *testing.T) { c.rayJobRuns(t) })
	t.Run("a job is suspended", func(t *testing.T) { c.rayJobIsSuspended(t) })
	t.Run("samples", func(t *testing.T) {
		c.samples(t, samplesIn(t, filepath.Join(module, "config", "samples"), ray.JobKind, ray.ClusterKind))
	})
}

// rayPods are the pods of Ray, of all clusters in the namespace.
func (c *cluster) rayPods(t *testing.T) podLister { return c.selected(t, "ray.io/is-ray-node=yes") }

func (c *cluster) rayWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "llama.yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, rayCluster, "llama"), 0o600))
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", path, "--dry-run=fit")
	if code != 6 || !strings.Contains(stdout, "it needs 3 gpus with 8 GPUs each") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.run(t, "submit", "-f", path)
	c.rayPods(t).wait(t, 4, "llama")
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "raycluster/llama")
	if code < 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `^BLOCKED  llama: it needs 3 gpus with 8 GPUs each, 24 in all, and the whole cluster has 16 GPUs on 2 nodes`, "pods ok 4/4")
	matches(t, c.run(t, "list"), `^llama +RayCluster +Pending`)
	matches(t, c.run(t, "get", "llama"), `head-0 .*Pending`, `gpu-2 .*Pending`)
}

func (c *cluster) rayRuns(t *testing.T) {
	c.node(t, "joins", "8")
	c.rayPods(t).are(t, "all run", 4, runs)
	c.run(t, "wait", "llama", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^llama +RayCluster +Running +4/4`)
	matches(t, c.run(t, "describe", "llama"), `RayCluster`, `head`, `gpu`)
	matches(t, c.run(t, "top", "job"), `llama`)
	matches(t, c.run(t, "events", "llama"), `Scheduled`, `CreatedHeadPod`)
	matches(t, c.run(t, "logs", "llama", "--tail", "1"), `gpu-2`, `head-0`)
	matches(t, c.run(t, "why-pending", "pod/"+c.rayPods(t)(t.Context())[0].Name), `llama`)
	c.run(t, "report", "llama", "-o", "json")
	matches(t, c.run(t, "resize", "raycluster/llama", "--replicas", "gpu=3", "--cpu", "200m", "--no-fit"), `^raycluster.ray.io/llama resized`)
	c.rayPods(t).are(t, "all run again, with more CPU", 4, func(p *corev1.Pod) bool {
		cpu := p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
		return runs(p) && cpu.String() == "200m"
	})
}

func (c *cluster) rayIsSuspended(t *testing.T) {
	c.run(t, "suspend", "llama")
	c.rayPods(t).are(t, "its pods are gone", 0, runs)
	matches(t, c.run(t, "list"), `^llama +RayCluster +Suspended`)
	stdout, _, _ := gangctlAt(t, c.Kubeconfig, "why-pending", "llama")
	matches(t, stdout, `llama is suspended`)
	c.run(t, "resume", "llama")
	c.rayPods(t).are(t, "all run again", 4, runs)
}

func (c *cluster) rayLosesMember(t *testing.T) {
	c.losesMember(t, c.rayPods(t), 4)
	c.run(t, "wait", "llama", "--for", "running", "--timeout", "1m")
}

func (c *cluster) rayIsDeleted(t *testing.T) {
	c.run(t, "delete", "llama")
	c.rayIsGone(t, ray.ClusterResource, "llama")
}

// rayIsGone waits until nothing is left of a job.
func (c *cluster) rayIsGone(t *testing.T, resource, name string) {
	t.Helper()
	eventually(t, "nothing is left of "+name, func(ctx context.Context) bool {
		_, noJob := c.dynamic.Resource(schema.GroupVersionResource{Group: ray.Group, Version: ray.Version, Resource: resource}).Namespace(space).Get(ctx, name, metav1.GetOptions{})
		_, noGroup := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(noJob) && apierrors.IsNotFound(noGroup) && len(c.rayPods(t)(ctx)) == 0
	})
}

// rayJobRuns: a RayJob is one job, with its RayCluster and without the pod that submits its entrypoint.
func (c *cluster) rayJobRuns(t *testing.T) {
	c.run(t, "submit", "ray", "train", "--image", "x", "--workers", "3", "--gpus", "8", "--cpu", "100m", "--memory", "64Mi", "--", "python", "train.py")
	c.rayPods(t).are(t, "all run", 4, runs)
	c.run(t, "wait", "train", "--for", "running", "--timeout", "1m")
	eventually(t, "its entrypoint is submitted", func(ctx context.Context) bool {
		jobs, err := c.client.BatchV1().Jobs(space).List(ctx, metav1.ListOptions{})
		return err == nil && len(jobs.Items) == 1
	})
	list := c.run(t, "list")
	matches(t, list, `^train +RayJob +Running +4/4`)
	if lines := strings.Count(strings.TrimSpace(list), "\n"); lines != 1 {
		t.Errorf("its parts are listed as jobs of their own:\n%s", list)
	}
	matches(t, c.run(t, "get", "rayjob/train"), `head-0 .*Running`, `worker-2 .*Running`)
	matches(t, c.run(t, "logs", "train", "--tail", "1"), `worker-2`)
	matches(t, c.run(t, "events", "train"), `CreatedRayCluster`, `CreatedHeadPod`)
	pod := c.rayPods(t)(t.Context())[0]
	matches(t, c.run(t, "why-pending", "pod/"+pod.Name), `train`)
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "suspend", "raycluster/"+pod.Labels["ray.io/cluster"])
	if code == 0 || !strings.Contains(stderr, "RayJob train made it, and decides whether it runs\nhint: suspend that: gangctl --kubeconfig "+c.Kubeconfig+" suspend rayjob/train") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func (c *cluster) rayJobIsSuspended(t *testing.T) {
	c.run(t, "suspend", "train")
	c.rayPods(t).are(t, "its pods are gone", 0, runs)
	matches(t, c.run(t, "list"), `^train +RayJob +Suspended`)
	c.run(t, "resume", "train")
	c.rayPods(t).are(t, "all run again, in another RayCluster", 4, runs)
	c.run(t, "wait", "train", "--for", "running", "--timeout", "1m")
	c.run(t, "delete", "train")
	c.rayIsGone(t, ray.JobResource, "train")
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// trainingSet is a JobSet as users write it: a driver, and three workers in a Job each, with nothing about a gang in it. %[1]s is its name,
// %[2]s what is between spec and the replicated jobs.
const trainingSet = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %[1]s
spec:%[2]s
  replicatedJobs:
  - name: driver
    template:
      spec:
        template:
          metadata:
            annotations: {sandbox.gangctl.dev/run-for: "%[3]s"}
          spec:
            containers:
            - {name: main, image: x, resources: {requests: {cpu: 100m}}}
  - name: workers
    replicas: 3
    template:
      spec:
        parallelism: 1
        completions: 1
        template:
          metadata:
            annotations: {sandbox.gangctl.dev/run-for: "%[3]s"}
          spec:
            containers:
            - {name: main, image: x, resources: {requests: {cpu: 100m}, limits: {nvidia.com/gpu: 8}}}
`

// TestJobSet has the controller of JobSet, as it is released, with its webhooks, make the pods of a gang.
func TestJobSet(t *testing.T) {
	module, c := moduleOf(t, "jobset"), newCluster(t, withControllers(t, "jobset", "--nodes=2", "--cpu=16", "--gpus=8", "--operator=false", "--volumes")...)
	t.Run("in order", func(t *testing.T) { c.jobSetInOrder(t) })
	t.Run("a node short, and smaller", func(t *testing.T) {
		c.run(t, "submit", "-f", jobSetFile(t, "smaller", "", "0"))
		c.takesAdvice(t, "jobset/smaller", "2 workers instead of 3", c.podsOf(t, "smaller"), 3)
	})
	t.Run("a node short", func(t *testing.T) { c.jobSetWaits(t) })
	t.Run("the node joins", func(t *testing.T) { c.jobSetRuns(t) })
	t.Run("suspend and resume", func(t *testing.T) { c.jobSetIsSuspended(t) })
	t.Run("a member dies", func(t *testing.T) { c.losesMember(t, c.podsOf(t, "llama"), 4) })
	t.Run("delete", func(t *testing.T) { c.jobSetIsDeleted(t) })
	t.Run("to the end", func(t *testing.T) { c.jobSetEnds(t) })
	t.Run("samples", func(t *testing.T) {
		// Those of its site are in its repository, and not in its module.
		if repository := os.Getenv("GANGCTL_JOBSET_REPOSITORY"); repository != "" {
			module = repository
		}
		c.samples(t, samplesIn(t, module, jobset.Kind))
	})
}

// run runs gangctl, which has to succeed, and returns what it printed.
func (c *cluster) run(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, args...)
	if code != 0 {
		t.Errorf("gangctl %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// matches reports lines that are not in a text.
func matches(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
			t.Errorf("no %q in\n%s", pattern, text)
		}
	}
}

// jobSetFile writes the file of a JobSet.
func jobSetFile(t *testing.T, name, spec, runFor string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, trainingSet, name, spec, runFor), 0o600))
	return path
}

// podsOf are the pods of a JobSet.
func (c *cluster) podsOf(t *testing.T, name string) podLister {
	return c.selected(t, jobset.NameLabel+"="+name)
}

// jobSetInOrder: each replicated job is a gang, which is made when those before it run.
func (c *cluster) jobSetInOrder(t *testing.T) {
	path := jobSetFile(t, "ordered", "\n  startupPolicy: {startupPolicyOrder: InOrder}", "0")
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", path, "--dry-run=fit")
	if code != 6 || !strings.Contains(stdout, "ordered workers: it needs 3 workers with 8 GPUs each") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.run(t, "submit", "-f", path)
	driver := c.selected(t, jobset.NameLabel+"=ordered,jobset.sigs.k8s.io/replicatedjob-name=driver")
	workers := c.selected(t, jobset.NameLabel+"=ordered,jobset.sigs.k8s.io/replicatedjob-name=workers")
	driver.are(t, "the driver runs", 1, runs)
	workers.wait(t, 3, "ordered-workers")
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "ordered")
	if code < 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `^BLOCKED  ordered workers: it needs 3 workers with 8 GPUs each`, "ordered has 2 roles, each a gang of its own: 1 runs, and this is about workers")
	matches(t, c.run(t, "why-pending", "ordered", "--replica", "driver"), `^RUNNING +ordered driver: 1/1 members run`)
	matches(t, c.run(t, "list", "-o", "wide"), `^ordered +JobSet +Starting +1/4 .* 1/1\+3/3 .*1/2 roles run`)
	matches(t, c.run(t, "get", "ordered"), `1 of 1 driver, 3 of 3 workers start together, each role by itself`)
	matches(t, c.run(t, "describe", "ordered"), `JobSet`, `driver`, `workers`)
	matches(t, c.run(t, "top", "job"), `ordered`)
	c.node(t, "ordered", "8")
	workers.are(t, "the workers run", 3, runs)
	c.run(t, "wait", "ordered", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^ordered +JobSet +Running +4/4`)
	c.run(t, "suspend", "ordered")
	c.podsOf(t, "ordered").are(t, "its pods are gone", 0, runs)
	c.run(t, "resume", "ordered")
	c.podsOf(t, "ordered").are(t, "all run again", 4, runs)
	c.run(t, "delete", "ordered")
	eventually(t, "nothing is left of it", func(ctx context.Context) bool {
		_, err := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(ctx, "ordered-workers", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(c.podsOf(t, "ordered")(ctx)) == 0
	})
	must(t, c.client.CoreV1().Nodes().Delete(t.Context(), "ordered", now()))
}

func (c *cluster) jobSetWaits(t *testing.T) {
	path := jobSetFile(t, "llama", "", "0")
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", path, "--dry-run=fit")
	if code != 6 || !strings.Contains(stdout, "it needs 3 workers with 8 GPUs each") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.run(t, "submit", "-f", path)
	c.podsOf(t, "llama").wait(t, 4, "llama")
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "llama")
	if code < 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `^BLOCKED  llama: it needs 3 workers with 8 GPUs each, 24 in all, and the whole cluster has 16 GPUs on 2 nodes`, `add 1 node like node-1 \(8 GPUs\)`, "pods ok 4/4")
	list := c.run(t, "list")
	matches(t, list, `^llama +JobSet +`)
	if lines := strings.Count(strings.TrimSpace(list), "\n"); lines != 1 {
		t.Errorf("its Jobs are listed as jobs of their own:\n%s", list)
	}
	matches(t, c.run(t, "get", "jobset/llama"), `driver-0 .*Pending`, `workers-2 .*Pending`)
}

func (c *cluster) jobSetRuns(t *testing.T) {
	c.node(t, "joins", "8")
	c.podsOf(t, "llama").are(t, "all run", 4, runs)
	c.run(t, "wait", "llama", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^llama +JobSet +Running +4/4`)
	matches(t, c.run(t, "describe", "llama"), `JobSet`, `driver`, `workers`)
	matches(t, c.run(t, "top", "job"), `llama`)
	matches(t, c.run(t, "events", "llama"), `Scheduled`)
	matches(t, c.run(t, "logs", "llama", "--tail", "1"), `workers-2`)
	matches(t, c.run(t, "why-pending", "pod/"+c.podsOf(t, "llama")(t.Context())[0].Name), `llama`)
	c.run(t, "report", "llama", "-o", "json")
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "resize", "jobset/llama", "--cpu", "200m")
	if code == 0 || !strings.Contains(stderr, "the API of JobSets fixes how many members there are and how their pods are\nhint: with --recreate") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	matches(t, c.run(t, "resize", "jobset/llama", "--node-selector", "kubernetes.io/os=linux", "--no-fit"), `^jobset.jobset.x-k8s.io/llama resized`)
	c.podsOf(t, "llama").are(t, "all run again, where the change has them", 4, func(p *corev1.Pod) bool { return runs(p) && p.Spec.NodeSelector["kubernetes.io/os"] == "linux" })
}

func (c *cluster) jobSetIsSuspended(t *testing.T) {
	c.run(t, "suspend", "llama")
	eventually(t, "its pods are gone", func(ctx context.Context) bool { return len(c.podsOf(t, "llama")(ctx)) == 0 })
	matches(t, c.run(t, "list"), `^llama +JobSet +Suspended`)
	stdout, _, _ := gangctlAt(t, c.Kubeconfig, "why-pending", "llama")
	matches(t, stdout, `llama is suspended`)
	c.run(t, "resume", "llama")
	c.podsOf(t, "llama").are(t, "all run", 4, runs)
}

func (c *cluster) jobSetIsDeleted(t *testing.T) {
	c.run(t, "delete", "llama")
	eventually(t, "nothing is left of it", func(ctx context.Context) bool {
		_, noSet := c.dynamic.Resource(jobSets()).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
		_, noGroup := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
		return apierrors.IsNotFound(noSet) && apierrors.IsNotFound(noGroup) && len(c.podsOf(t, "llama")(ctx)) == 0
	})
}

func jobSets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: jobset.Group, Version: jobset.Version, Resource: jobset.Resource}
}

func (c *cluster) jobSetEnds(t *testing.T) {
	c.run(t, "submit", "-f", jobSetFile(t, "short", "", "1s"), "--wait", "--timeout", "1m")
	c.run(t, "wait", "short", "--for", "done", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^short +JobSet +Succeeded`)
}

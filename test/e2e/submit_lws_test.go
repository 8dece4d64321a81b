package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// servingSet is a LeaderWorkerSet as users write it: two replicas of a leader and two workers, with nothing about a gang in it. %[1]s is its name,
// %[2]s what is between spec and the templates.
const servingSet = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: %[1]s
spec:%[2]s
  replicas: 2
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec:
        containers:
        - {name: main, image: x, resources: {requests: {cpu: 100m}, limits: {nvidia.com/gpu: 8}}}
`

// TestLeaderWorkerSet has the controller of LeaderWorkerSet, as it is released, with its webhooks, make the pods of two gangs.
func TestLeaderWorkerSet(t *testing.T) {
	module, c := moduleOf(t, "lws"), newCluster(t, withControllers(t, "lws", "--nodes=5", "--cpu=16", "--gpus=8", "--operator=false", "--volumes", "--serve=volcano")...)
	t.Run("refused", func(t *testing.T) { c.refusesServices(t) })
	t.Run("a node short", func(t *testing.T) { c.oneReplicaWaits(t) })
	t.Run("the node joins", func(t *testing.T) { c.bothReplicasRun(t) })
	t.Run("a member dies", func(t *testing.T) { c.replicaIsMadeAgain(t) })
	t.Run("delete", func(t *testing.T) { c.serviceIsDeleted(t) })
	t.Run("samples", func(t *testing.T) {
		c.samples(t, slices.Concat(samplesIn(t, filepath.Join(module, "config", "samples"), leaderworkerset.Kind), samplesIn(t, filepath.Join(module, "docs", "examples"), leaderworkerset.Kind)))
	})
}

func services() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: leaderworkerset.Group, Version: leaderworkerset.Version, Resource: leaderworkerset.Resource}
}

// serviceFile writes the file of a LeaderWorkerSet.
func serviceFile(t *testing.T, name, spec string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, servingSet, name, spec), 0o600))
	return path
}

// replicasOf are the pods of a LeaderWorkerSet, by the number of their replica.
func (c *cluster) replicasOf(ctx context.Context, t *testing.T, name string) map[string][]corev1.Pod {
	t.Helper()
	pods, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{LabelSelector: leaderworkerset.NameLabel + "=" + name})
	must(t, err)
	all := map[string][]corev1.Pod{}
	for _, pod := range pods.Items {
		replica := pod.Labels[leaderworkerset.GroupIndexLabel]
		all[replica] = append(all[replica], pod)
	}
	return all
}

// refusesServices: what cannot be a gang is not silently none.
func (c *cluster) refusesServices(t *testing.T) {
	path := serviceFile(t, "late", "\n  startupPolicy: LeaderReady")
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", path)
	if code != 1 || !strings.Contains(stderr, "(startupPolicy: LeaderReady): its members cannot start together\nhint: add --dialect none") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// oneReplicaWaits: of two replicas of three members on five nodes, one runs whole and the other holds nothing.
func (c *cluster) oneReplicaWaits(t *testing.T) {
	path := serviceFile(t, "llama", "")
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", path, "--dry-run=fit")
	if code < 3 || !strings.Contains(stdout, "llama replica 1: ") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.run(t, "submit", "-f", path)
	running, waiting := "", ""
	eventually(t, "one replica runs, and the other is refused", func(ctx context.Context) bool {
		all := c.replicasOf(ctx, t, "llama")
		running, waiting = "", ""
		for replica, pods := range all {
			if count(pods, runs) == 3 {
				running = replica
			}
			if count(pods, refusedToSchedule) == 3 {
				waiting = replica
			}
		}
		return running != "" && waiting != ""
	})
	for _, pod := range c.replicasOf(t.Context(), t, "llama")[waiting] {
		if pod.Spec.NodeName != "" || pod.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("%s of %s is on node %q", pod.Name, pod.Spec.SchedulerName, pod.Spec.NodeName)
		}
	}
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "llama")
	if code < 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, "llama replica "+waiting+": ", "llama has 2 replicas, each a gang of its own: 1 runs, and this is about replica "+waiting)
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "lws/llama", "--replica", running)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, "^RUNNING +llama replica "+running+": 3/3 members run")
	list := c.run(t, "list")
	matches(t, list, `^llama +LeaderWorkerSet +Starting +3/6 .*1/2 replicas run`)
	if lines := strings.Count(strings.TrimSpace(list), "\n"); lines != 1 {
		t.Errorf("it is several jobs:\n%s", list)
	}
	matches(t, c.run(t, "get", "lws/llama"), `leader-0`, `worker-3`)
}

func (c *cluster) bothReplicasRun(t *testing.T) {
	c.node(t, "joins", "8")
	eventually(t, "both replicas run", func(ctx context.Context) bool {
		all := c.replicasOf(ctx, t, "llama")
		return count(all["0"], runs) == 3 && count(all["1"], runs) == 3
	})
	c.run(t, "wait", "llama", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^llama +LeaderWorkerSet +Running +6/6`)
	matches(t, c.run(t, "why-pending", "llama"), `^RUNNING +llama: 6/6 members run`)
	matches(t, c.run(t, "describe", "llama"), `LeaderWorkerSet`, `leader`, `worker`)
	matches(t, c.run(t, "top", "job"), `llama`)
	matches(t, c.run(t, "events", "llama"), `Scheduled`)
	matches(t, c.run(t, "logs", "llama", "--tail", "1"), `worker-2`)
	matches(t, c.run(t, "why-pending", "pod/llama-1-2"), `llama replica 1`)
	c.run(t, "report", "llama", "-o", "json")
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "suspend", "lws/llama")
	if code == 0 || !strings.Contains(stderr, "has no field to suspend it") || !strings.Contains(stderr, "--replicas=0") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// replicaIsMadeAgain: the controller makes all members of a replica again that loses one, and the other replica stays.
func (c *cluster) replicaIsMadeAgain(t *testing.T) {
	uids := func(pods []corev1.Pod) map[string]bool {
		all := map[string]bool{}
		for _, pod := range pods {
			all[string(pod.UID)] = true
		}
		return all
	}
	before := c.replicasOf(t.Context(), t, "llama")
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), "llama-1-2", metav1.DeleteOptions{}))
	old := uids(before["1"])
	eventually(t, "all members are others, and run", func(ctx context.Context) bool {
		now := c.replicasOf(ctx, t, "llama")["1"]
		for _, pod := range now {
			if old[string(pod.UID)] {
				return false
			}
		}
		return count(now, runs) == 3
	})
	kept := uids(c.replicasOf(t.Context(), t, "llama")["0"])
	for uid := range uids(before["0"]) {
		if !kept[uid] {
			t.Errorf("replica 0 lost a pod")
		}
	}
}

func (c *cluster) serviceIsDeleted(t *testing.T) {
	c.run(t, "delete", "llama")
	eventually(t, "nothing is left of it", func(ctx context.Context) bool {
		_, err := c.dynamic.Resource(services()).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(c.replicasOf(ctx, t, "llama")) == 0
	})
}

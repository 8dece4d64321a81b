package usage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
)

// lines are the queues as tests compare them.
func lines(c *clustertest.Cluster) []string {
	var all []string
	for _, q := range queuesOf(c).Queues {
		text := fmt.Sprintf("%s %q under %q %s holds %d, runs %d, waits %d for %d", q.Kind, q.Name, q.Parent, q.State, q.Held.AllDevices(), q.Running, q.Waiting, q.Requested)
		for _, r := range q.Quotas {
			text += fmt.Sprintf(" [%s %d/%d]", r.Resource, r.Used, r.Limit)
		}
		all = append(all, text)
	}
	return all
}

func TestVolcanoQueues(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	c.Queue("research", "Open", map[string]any{"nvidia.com/gpu": "16", "cpu": "64"})
	c.Queue("idle", "Closed", nil)
	c.Add(clustertest.Gang{Name: "a", Workers: 2, GPUs: 4, Volcano: "research", Nodes: []string{"n1", "n2"}})
	c.Add(clustertest.Gang{Name: "b", Workers: 2, GPUs: 8, Volcano: "research"})
	c.Add(clustertest.Gang{Name: "lost", Workers: 1, GPUs: 1, Volcano: "misspelt"})
	c.Add(clustertest.Gang{Name: "free", Workers: 1, GPUs: 2, Nodes: []string{"n1"}})
	want := []string{
		`Queue "idle" under "" Closed holds 0, runs 0, waits 0 for 0`,
		` "misspelt" under ""  holds 0, runs 0, waits 1 for 1`,
		`Queue "research" under "" Open holds 8, runs 1, waits 1 for 16 [nvidia.com/gpu 8/16] [cpu 16000/64000]`,
		` "" under ""  holds 2, runs 1, waits 0 for 0`,
	}
	if diff := cmp.Diff(want, lines(c)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// What is below a queue counts for it.
func TestQueuesBelowOthers(t *testing.T) {
	c := clustertest.New().Nodes(3, 8)
	below := func(queue, parent string, capability map[string]any) {
		clustertest.Set(parent, "spec", "parent")(c.Queue(queue, "Open", capability).Object)
	}
	c.Queue("root", "Open", nil)
	below("org", "root", map[string]any{"nvidia.com/gpu": "16"})
	below("team", "org", nil)
	below("circle", "circle", nil)
	c.Add(clustertest.Gang{Name: "a", Workers: 2, GPUs: 4, Volcano: "team", Nodes: []string{"n1", "n2"}})
	c.Add(clustertest.Gang{Name: "b", Workers: 1, GPUs: 2, Volcano: "circle", Nodes: []string{"n1"}})
	for _, q := range [][2]string{{"dept", ""}, {"kai-team", "dept"}} {
		c.Object(map[string]any{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": map[string]any{"name": q[0]}, "spec": map[string]any{"parentQueue": q[1],
			"resources": map[string]any{"gpu": map[string]any{"limit": int64(12), "quota": int64(4)}, "cpu": map[string]any{"limit": int64(-1)}}}})
	}
	c.Add(clustertest.Gang{Name: "k", Workers: 1, GPUs: 4, Dialect: "kai", Queue: "kai-team", Nodes: []string{"n3"}})
	want := []string{
		`Queue "circle" under "circle" Open holds 2, runs 1, waits 0 for 0`,
		`Queue "dept" under ""  holds 4, runs 1, waits 0 for 0 [nvidia.com/gpu 4/12]`,
		`Queue "kai-team" under "dept"  holds 4, runs 1, waits 0 for 0 [nvidia.com/gpu 4/12]`,
		`Queue "org" under "root" Open holds 8, runs 1, waits 0 for 0 [nvidia.com/gpu 8/16]`,
		`Queue "root" under "" Open holds 8, runs 1, waits 0 for 0`,
		`Queue "team" under "org" Open holds 8, runs 1, waits 0 for 0`,
	}
	if diff := cmp.Diff(want, lines(c)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestKueueQueues(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	c.ClusterQueue("gpus", "all", clustertest.Quota{Flavor: "a100", Resource: "nvidia.com/gpu", Nominal: "8"}, clustertest.Quota{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: "4"})
	c.LocalQueue("ours", "gpus")
	label := func(job map[string]any) {
		job["metadata"].(map[string]any)["labels"] = map[string]any{"kueue.x-k8s.io/queue-name": "ours"}
	}
	c.Add(clustertest.Gang{Name: "a", Workers: 2, GPUs: 4, Nodes: []string{"n1", "n2"}, Job: label})
	clustertest.Admit(c.Workload("a", "ours", time.Hour), "gpus", "a100", "8")
	c.Add(clustertest.Gang{Name: "b", Workers: 2, GPUs: 4, Missing: 2, Job: func(job map[string]any) { label(job); suspend(job) }})
	c.Workload("b", "ours", time.Minute)
	want := []string{`ClusterQueue "gpus" under "all" Open holds 8, runs 1, waits 1 for 8 [nvidia.com/gpu 8/12]`}
	if diff := cmp.Diff(want, lines(c)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A pool that is scaled to zero: what waits for it is counted before it has a node.
func TestQueuesOfWhatNoNodeHas(t *testing.T) {
	c := clustertest.New().Add(clustertest.Gang{Name: "llama", Workers: 4, GPUs: 8})
	if diff := cmp.Diff([]string{` "" under ""  holds 0, runs 0, waits 1 for 32`}, lines(c)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Pods that are being deleted hold theirs next to those that replace them, and take nothing away from what others wait for.
func TestQueuesWithPodsThatLeave(t *testing.T) {
	c := clustertest.New().Nodes(4, 8)
	c.Add(clustertest.Gang{Name: "a", Workers: 2, GPUs: 8, Nodes: []string{"n1"}})
	for i, p := range slices.Clone(c.S.Pods) {
		old := p.DeepCopy()
		old.Name, old.UID, old.Spec.NodeName, old.Status.Phase = p.Name+"-old", p.UID+"-old", fmt.Sprintf("n%d", i+2), corev1.PodRunning
		c.Put(leaving(old, time.Minute))
	}
	c.Add(clustertest.Gang{Name: "b", Workers: 1, GPUs: 4})
	if diff := cmp.Diff([]string{` "" under ""  holds 24, runs 0, waits 2 for 4`}, lines(c)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

package advice_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What Kueue waits for stays as it is whatever is changed about the job or the nodes: only what removes it is offered.
func TestWhatKueueWaitsFor(t *testing.T) {
	held := func(c *clustertest.Cluster, status map[string]any) {
		c.Nodes(4, 8).LocalQueue("lq", "cq")
		c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "32"})
		c.Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, NoGroup: true, Job: func(j map[string]any) {
			clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
			clustertest.Set(true, "spec", "runPolicy", "suspend")(j)
		}})
		u := c.Workload("gang", "lq", time.Minute)
		clustertest.PodSet(u, "worker", 2, clustertest.List("nvidia.com/gpu", "8"), nil)
		u.Object["status"] = status
	}
	reported := func(reason, message string) []any {
		return []any{clustertest.Condition("QuotaReserved", "False", reason, message, time.Minute)}
	}
	for name, tt := range map[string]struct {
		build func(*clustertest.Cluster)
		waits bool // for another job, which is offered
	}{
		"a pause": {func(c *clustertest.Cluster) {
			held(c, map[string]any{"requeueState": map[string]any{"count": int64(2), "requeueAt": "2026-11-21T14:03:00Z"}})
		}, false},
		"something that is not known here": {func(c *clustertest.Cluster) {
			held(c, map[string]any{"conditions": reported("Pending", "the moon is not full")})
		}, false},
		"pods that are not ready": {func(c *clustertest.Cluster) {
			held(c, map[string]any{"conditions": reported("WaitingForPodsReady", "waiting for all admitted workloads to be in PodsReady condition")})
			c.Add(clustertest.Gang{Name: "bert", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, NoGroup: true, Pod: func(_ int, p *corev1.Pod) { p.Status.Phase = corev1.PodPending }})
			clustertest.Admit(c.Workload("bert", "lq", time.Hour), "cq", "f", "8")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			base, found := look(t, c, advice.Options{})
			if base.Primary == nil || base.Primary.Code != answer.KueueQuota {
				t.Fatalf("found %+v", base.Primary)
			}
			for _, a := range found.Actions {
				if !tt.waits || a.Kind != answer.Wait && a.Kind != answer.Evict {
					t.Errorf("offered: %s %s", a.Kind, a.Text)
				}
			}
		})
	}
}

// To have others preempted is never the first way out, nor hidden in a way that has several steps.
func TestPolicyOfKueueComesLast(t *testing.T) {
	c := clustertest.New()
	c.Nodes(4, 8).LocalQueue("lq", "cq")
	queue := c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
	clustertest.Set("Hold", "spec", "stopPolicy")(queue.Object)
	c.Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, NoGroup: true})
	clustertest.Admit(c.Workload("other", "lq", time.Hour), "cq", "f", "16")
	c.Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, NoGroup: true, Job: func(j map[string]any) {
		clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
		clustertest.Set(true, "spec", "runPolicy", "suspend")(j)
	}})
	clustertest.Set(int64(10), "spec", "priority")(c.Workload("gang", "lq", time.Minute).Object)
	_, found := look(t, c, advice.Options{})
	if len(found.Actions) == 0 || !strings.Contains(found.Actions[0].Text, "raise nominalQuota") {
		t.Fatalf("offered: %+v", found.Actions)
	}
	for _, a := range found.Actions {
		if strings.Contains(a.Text, "preempts") && a.Kind != answer.Evict {
			t.Errorf("%s ends jobs: %s", a.Kind, a.Text)
		}
	}
}

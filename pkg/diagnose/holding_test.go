package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
)

// The members of a gang idle since it was whole for the last time, or since the last of them was up.
func TestIdleSince(t *testing.T) {
	onTwo := func(pod func(i int, p *corev1.Pod)) clustertest.Gang {
		return clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Nodes: []string{"n1"}, Age: time.Hour, Pod: pod}
	}
	up := time.Hour - 2*time.Second
	for _, r := range []struct {
		name  string
		build func(c *clustertest.Cluster)
		ago   time.Duration // 0 if it is not known
	}{
		{"a member was made again", func(c *clustertest.Cluster) {
			c.Add(onTwo(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.CreationTimestamp = clustertest.Ago(12 * time.Second)
				}
			}))
		}, 12 * time.Second},
		{"a member never had a node", func(c *clustertest.Cluster) { c.Add(onTwo(nil)) }, up},
		{"a member was evicted", func(c *clustertest.Cluster) {
			g := onTwo(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: clustertest.Ago(400 * time.Second)}}}
				}
			})
			g.Nodes = []string{"n1", "n2"}
			c.Add(g)
		}, 400 * time.Second},
		{"a member was evicted, as an event has it", func(c *clustertest.Cluster) {
			g := onTwo(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: clustertest.Ago(59 * time.Minute)}}}
				}
			})
			g.Nodes = []string{"n1", "n2"}
			c.Add(g)
			c.Event("Pod", "team", "gang-worker-1", "kubelet", "Evicted", "The node was low on resource: ephemeral-storage.", 300*time.Second)
		}, 300 * time.Second},
		{"a quota refuses the pod", func(c *clustertest.Cluster) {
			g := onTwo(nil)
			g.Missing = 1
			c.Add(g)
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod", `Error creating: pods "gang-worker-1" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16`, 8*time.Minute)
		}, 8 * time.Minute},
		{"the node of a member is gone", func(c *clustertest.Cluster) {
			g := onTwo(nil)
			g.Nodes = []string{"n1", "n9"}
			c.Add(g)
		}, 0},
		{"the job is done", func(c *clustertest.Cluster) {
			g := onTwo(nil)
			g.Nodes = []string{"n1", "n2"}
			g.Job = clustertest.Set([]any{clustertest.Condition("Succeeded", "True", "TFJobSucceeded", "it has", time.Minute)}, "status", "conditions")
			c.Add(g)
		}, time.Minute},
		{"no container ever ran", func(c *clustertest.Cluster) {
			g := onTwo(func(_ int, p *corev1.Pod) {
				podWaits(p, "CrashLoopBackOff", "back-off")
				p.Status.ContainerStatuses[0].RestartCount = 6
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", FinishedAt: clustertest.Ago(100 * time.Second)}
			})
			g.Nodes = []string{"n1", "n2"}
			c.Add(g)
		}, up},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := clustertest.New().Nodes(2, 8)
			r.build(c)
			a, err := Explain(t.Context(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{})
			switch {
			case err != nil:
				t.Fatal(err)
			case a.Holding.GPUs == 0:
				t.Fatalf("nothing is held: %s", a.Headline)
			case r.ago == 0 && a.Holding.Since != nil:
				t.Errorf("idle since %s", a.Holding.Since)
			case r.ago > 0 && (a.Holding.Since == nil || !a.Holding.Since.Equal(clustertest.Now.Add(-r.ago))):
				t.Errorf("idle since %v, and not for %s: %s", a.Holding.Since, r.ago, a.Headline)
			}
		})
	}
}

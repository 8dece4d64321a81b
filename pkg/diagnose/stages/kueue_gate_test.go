package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Where Kueue has assigned a member is no rule of the job; where the node is not healthy, Kueue looks for another.
func TestKueueHasAssigned(t *testing.T) {
	assigned := func(c *clustertest.Cluster) *unstructured.Unstructured {
		pool(c, "16")
		c.Add(gangOf(2, 8, ungrouped, job(set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")), func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }, pods(func(i int, p *corev1.Pod) {
			p.Labels["kueue.x-k8s.io/podset"] = "worker"
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: []string{"n1", "n2"}[i]}
		})))
		u := c.Workload("gang", "lq", time.Hour)
		clustertest.Admit(u, "cq", "f", "16")
		sets := u.Object["status"].(map[string]any)["admission"].(map[string]any)["podSetAssignments"].([]any)
		sets[0].(map[string]any)["topologyAssignment"] = map[string]any{"levels": []any{corev1.LabelHostname}}
		return u
	}
	check(t, []testCase{
		{name: "another job has the node", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.NodesBusy}, wantText: []string{"Kueue has assigned worker-1 to kubernetes.io/hostname=n2", "evict Workload tfjob-gang and admit it again"}, build: func(c *clustertest.Cluster) {
			assigned(c)
			c.Runs("hog", 8, "n2")
		}},
		{name: "the node is not healthy", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.NodesBusy}, never: []answer.Code{answer.NodeNotReady}, wantText: []string{"Kueue looks for another node than n2", "hog"}, not: []string{"has assigned worker-1"}, build: func(c *clustertest.Cluster) {
			set([]any{map[string]any{"name": "n2"}}, "status", "unhealthyNodes")(assigned(c).Object)
			clustertest.NotReady(c.S.Nodes[1], 12*time.Minute)
			c.Runs("hog", 8, "n3", "n4")
		}},
	})
}

// Kueue holds pods of what it has admitted until it has given each its place: such a gang does not start now.
func TestKueueHoldsWhatItHasAdmitted(t *testing.T) {
	// held adds the gang, whose pods have some gates, admitted some time ago.
	held := func(c *clustertest.Cluster, ago time.Duration, gates ...string) *unstructured.Unstructured {
		pool(c, "16")
		c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
			g.Job = set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")
			g.Pod = func(_ int, p *corev1.Pod) {
				for _, name := range gates {
					p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
				}
				p.Labels["kueue.x-k8s.io/podset"] = "worker"
				p.Annotations = map[string]string{"kueue.x-k8s.io/workload": "tfjob-gang"}
			}
		}))
		u := c.Workload("gang", "lq", time.Hour)
		clustertest.Admit(u, "cq", "f", "16")
		set([]any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", ago), clustertest.Condition("Admitted", "True", "Admitted", "", ago)}, "status", "conditions")(u.Object)
		sets := u.Object["status"].(map[string]any)["admission"].(map[string]any)["podSetAssignments"].([]any)
		sets[0].(map[string]any)["topologyAssignment"] = map[string]any{"levels": []any{"kubernetes.io/hostname"}}
		return u
	}
	const topology, admission = "kueue.x-k8s.io/topology", "kueue.x-k8s.io/admission"
	check(t, []testCase{
		{name: "just now", code: answer.SchedulingGated, exit: 3, first: "has admitted it, and still holds 2 of 2 pods by the scheduling gate kueue.x-k8s.io/topology, until it has given each its place", build: func(c *clustertest.Cluster) {
			held(c, 10*time.Second, topology)
		}},
		{name: "for long", code: answer.SchedulingGated, exit: 5, first: "should have lifted that long ago", wantText: []string{"admitted 20m ago"}, build: func(c *clustertest.Cluster) {
			held(c, 20*time.Minute, topology)
		}},
		{name: "for long, and a pod was made again just now", code: answer.SchedulingGated, exit: 3, first: "until it has given each its place", build: func(c *clustertest.Cluster) {
			held(c, 20*time.Minute, topology)
			c.S.Pods[len(c.S.Pods)-1].CreationTimestamp = metav1.NewTime(clustertest.Now.Add(-time.Second))
		}},
		{name: "for long, while another pod goes", code: answer.SchedulingGated, exit: 3, first: "while gang-worker-1 is still to go", build: func(c *clustertest.Cluster) {
			held(c, 20*time.Minute, topology)
			p := c.S.Pods[len(c.S.Pods)-1]
			soon := metav1.NewTime(clustertest.Now.Add(10 * time.Second))
			p.DeletionTimestamp, p.Spec.SchedulingGates = &soon, nil
		}},
		{name: "the other gate", code: answer.SchedulingGated, exit: 3, first: "by the scheduling gate kueue.x-k8s.io/admission", build: func(c *clustertest.Cluster) {
			held(c, 10*time.Second, admission)
		}},
		{name: "the node that was assigned is not healthy", code: answer.SchedulingGated, exit: 3, first: "looks for another node than n1", build: func(c *clustertest.Cluster) {
			set([]any{map[string]any{"name": "n1"}}, "status", "unhealthyNodes")(held(c, 20*time.Minute, topology).Object)
		}},
		{name: "nothing is assigned", code: answer.SchedulingGated, exit: 5, first: "has not assigned it to any part of its topology", build: func(c *clustertest.Cluster) {
			u := held(c, 10*time.Second, topology)
			sets := u.Object["status"].(map[string]any)["admission"].(map[string]any)["podSetAssignments"].([]any)
			delete(sets[0].(map[string]any), "topologyAssignment")
		}},
		{name: "an elastic job has grown, and its new Workload takes over what the old one uses", code: answer.Fits, exit: 3, never: []answer.Code{answer.SchedulingGated, answer.KueueQuota}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Job, g.Nodes = set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels"), []string{"n1"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/elastic-job"}}
					}
				}
			}))
			clustertest.Admit(c.Workload("gang", "lq", time.Hour), "cq", "f", "8")
			u := c.Workload("gang", "lq", time.Minute)
			u.SetName("tfjob-gang-2")
			u.SetAnnotations(map[string]string{"kueue.x-k8s.io/workload-slice-replacement-for": "team/tfjob-gang"})
		}},
		{name: "it is not admitted: the queue is why", code: answer.KueueQuota, exit: 3, never: []answer.Code{answer.SchedulingGated}, build: func(c *clustertest.Cluster) {
			u := held(c, time.Minute, topology)
			delete(u.Object, "status")
			uses(c, "other", "cq", "8")
		}},
	})
}

package stages_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Pods without an owner are a gang too, if they have its label.
func TestBarePods(t *testing.T) {
	orphaned := func(c *clustertest.Cluster) {
		jobs := kindOf("kubeflow.org", "TFJob")
		c.S.Custom[jobs] = slices.DeleteFunc(c.S.Custom[jobs], func(u *unstructured.Unstructured) bool { return u.GetName() == "gang" })
		for _, p := range c.S.Pods {
			if p.Namespace == "team" {
				p.OwnerReferences = nil
			}
		}
		for _, u := range c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")] {
			u.SetOwnerReferences(nil)
		}
	}
	gated := func(g *clustertest.Gang) {
		g.Dialect, g.Queue = gang.Kueue, "lq"
		g.Pod = func(_ int, p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		}
	}
	for _, r := range []testCase{
		{name: "fits", code: answer.Fits, exit: 3, first: "all 2 members", never: []answer.Code{answer.OperatorMissing, answer.BelowQuorum}, build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(2, 8, young)) }},
		{name: "busy", code: answer.NodesBusy, exit: 3, first: "2 members with 8 GPUs each", build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8)) }},
		{name: "its group is not there", code: answer.PodGroupMissing, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")] = nil
		}},
		{name: "fewer pods than the minimum: no controller makes more", code: answer.MinMemberTooHigh, exit: 4, wantText: []string{"create 1 more pod that names it, or lower its minimum"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Min = 3 }))
		}},
		{name: "a node refused one of them: the others do not decide where another would go", code: answer.NodeRefused, exit: 5, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Allocate failed"
					}
				}
			}))
		}},
		{name: "held by Kueue, whose Workload the pods own together", code: answer.KueueQuota, exit: 3, first: "cq has 8 of 16", never: []answer.Code{answer.SchedulingGated, answer.QueueNotFound}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Add(gangOf(2, 8, gated))
			u := c.Workload("gang", "lq", 0)
			set([]any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "gang-worker-0", "uid": "Pod:team/gang-worker-0"}}, "metadata", "ownerReferences")(u.Object)
		}},
		{name: "admitted by Kueue", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.KueueQuota}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Runs("a", 8, "n1", "n2", "n3").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Dialect, g.Queue = gang.Kueue, "lq" }))
			u := c.Workload("gang", "lq", 0)
			clustertest.Admit(u, "cq", "f", "16")
			set([]any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "gang-worker-0", "uid": "Pod:team/gang-worker-0"}}, "metadata", "ownerReferences")(u.Object)
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := clustertest.New()
			r.build(c)
			orphaned(c)
			w := view.New(c.Done())
			job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: "gang-worker-0"})
			if err != nil {
				t.Fatal(err)
			}
			got := stages.Evaluate(context.Background(), w, job, stages.Options{})
			r.check(t, got)
			sound(t, "", got)
		})
	}
}

// What a gang holds is counted by its placed members, and from when the last of them was up.
func TestHeld(t *testing.T) {
	c := clustertest.New().Nodes(3, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
	w := view.New(c.Done())
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	n, since := stage.IdleDevices(w.Gang(job))
	if n != 16 || since.IsZero() || !since.Equal(c.S.Pods[1].Status.StartTime.Time) {
		t.Errorf("got %d GPUs since %v", n, since)
	}
}

package stages_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
)

// The pods that are left of a job that is gone are no gang that waits: they go, or something holds them.
func TestLeftOfAJob(t *testing.T) {
	left := func(ago time.Duration) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(_ int, p *corev1.Pod) {
					at := clustertest.Ago(ago)
					p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/hold"}
				}
			}))
			delete(c.S.Custom, kindOf("kubeflow.org", "TFJob"))
			delete(c.S.Custom, kindOf("scheduling.x-k8s.io", "PodGroup"))
		}
	}
	check(t, []testCase{
		{name: "for some seconds", code: answer.JobTerminating, exit: 3, first: "gang is being deleted, for 10s: it waits for gang-worker-0, gang-worker-1 to end", wantText: []string{"gang-worker-0 should have gone 10s ago: it is held by finalizer example.com/hold"}, build: left(10 * time.Second)},
		{name: "for long", code: answer.JobTerminating, exit: 5, first: "gang-worker-0, gang-worker-1 have not gone, and should have", wantText: []string{"it is held by finalizer example.com/hold"}, build: left(time.Hour)},
	})
}

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
		{name: "held by Kueue, which makes no Workload before all of them are there", code: answer.MinMemberTooHigh, exit: 4, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Deployment("kueue-system", "kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2")
			c.Add(gangOf(2, 8, gated, func(g *clustertest.Gang) { g.Min = 3 }))
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

// A pod that has failed never runs again: where no controller of Kubernetes makes another, that is its end.
func TestBarePodFailed(t *testing.T) {
	for name, r := range map[string]struct {
		owner *metav1.OwnerReference
		want  answer.Code
	}{
		"of nothing":      {nil, answer.JobFailed},
		"of an operator":  {&metav1.OwnerReference{APIVersion: "sparkoperator.k8s.io/v1beta2", Kind: "SparkApplication", Name: "a", UID: "a", Controller: new(true)}, answer.JobFailed},
		"of a ReplicaSet": {&metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "a", Controller: new(true)}, answer.CrashLoop},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New().Nodes(1, 8)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "one", UID: "one", CreationTimestamp: clustertest.Ago(time.Hour)}}
			p.Spec.NodeName, p.Spec.Containers = "n1", []corev1.Container{{Name: "main"}}
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: ended(1, "Error", "")}}}}
			if r.owner != nil {
				p.OwnerReferences = []metav1.OwnerReference{*r.owner}
			}
			w := view.New(c.Put(p).Done())
			job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: "one"})
			if err != nil {
				t.Fatal(err)
			}
			if d := stages.Evaluate(context.Background(), w, job, stages.Options{}); d.Primary == nil || d.Primary.Code != r.want {
				t.Errorf("got %+v, want %s", d.Primary, r.want)
			}
		})
	}
}

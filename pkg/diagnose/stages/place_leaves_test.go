package stages_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// fixes are offered for nodes that can be had again.
func TestNodesThatAreClosed(t *testing.T) {
	closed := func(c *clustertest.Cluster, change func(*corev1.Node)) {
		c.Nodes(2, 8).Add(gangOf(2, 8))
		c.S.Nodes[1].Spec.Unschedulable = true
		change(c.S.Nodes[1])
	}
	removed := func(taint string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			closed(c, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule})
			})
		}
	}
	const goes = "^n2 is about to be removed, and the others are too few"
	check(t, []testCase{
		{name: "its provider takes it back", code: answer.NodeNotReady, exit: 5, first: goes, wantText: []string{"does not come back"}, not: []string{"fix: ", "uncordon"}, alone: true, build: removed("aws-node-termination-handler/spot-itn")},
		{name: "its autoscaler removes it", code: answer.NodeNotReady, exit: 5, first: goes, not: []string{"fix: ", "uncordon"}, alone: true, build: removed("ToBeDeletedByClusterAutoscaler")},
		{name: "one goes, and one is not ready", code: answer.NodeNotReady, exit: 5, fix: "repair n3", not: []string{"repair n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(3, 8))
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
			clustertest.NotReady(c.S.Nodes[2], time.Hour)
		}},
		{name: "its driver is being upgraded", code: answer.NodeNotReady, exit: 3, first: "^n2 is cordoned while a driver is upgraded", wantText: []string{"n2 has label nvidia.com/gpu-driver-upgrade-state=pod-restart-required"}, not: []string{"fix: "}, build: func(c *clustertest.Cluster) {
			closed(c, func(n *corev1.Node) { n.Labels["nvidia.com/gpu-driver-upgrade-state"] = "pod-restart-required" })
		}},
		{name: "the upgrade of its driver has failed", code: answer.NodeNotReady, exit: 5, fix: "uncordon n2, once what keeps it cordoned is repaired", build: func(c *clustertest.Cluster) {
			closed(c, func(n *corev1.Node) { n.Labels["nvidia.com/gpu-driver-upgrade-state"] = "upgrade-failed" })
		}},
		{name: "its driver has been upgraded", code: answer.NodeNotReady, exit: 5, not: []string{"upgrade", "once what"}, fix: "uncordon n2", build: func(c *clustertest.Cluster) {
			closed(c, func(n *corev1.Node) { n.Labels["nvidia.com/gpu-driver-upgrade-state"] = "upgrade-done" })
		}},
		{name: "a GPU is broken", code: answer.NodeNotReady, exit: 5, wantText: []string{"n2 reports GpuXidError: fallen off the bus"}, fix: "uncordon n2, once what keeps it cordoned is repaired", build: func(c *clustertest.Cluster) {
			closed(c, func(n *corev1.Node) {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "GpuXidError", Status: corev1.ConditionTrue, Message: "fallen off the bus"}, corev1.NodeCondition{Type: "KernelReady", Status: corev1.ConditionTrue})
			})
		}},
	})
}

// Why pods are being deleted is what their condition has.
func TestWhyVictimsLeave(t *testing.T) {
	leaving := func(reason string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			o := other("a", 8, "n1")
			o.Pod = func(i int, p *corev1.Pod) {
				terminating(time.Minute)(i, p)
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
			}
			c.Nodes(1, 8).Add(o).Add(gangOf(1, 8))
		}
	}
	check(t, []testCase{
		{name: "a drain", code: answer.VictimsTerminating, exit: 3, first: "research/a is being evicted", build: leaving("EvictionByEvictionAPI")},
		{name: "a taint", code: answer.VictimsTerminating, exit: 3, first: "research/a is being evicted", build: leaving("DeletionByTaintManager")},
		{name: "garbage", code: answer.VictimsTerminating, exit: 3, first: "research/a is being deleted", build: leaving("DeletionByPodGC")},
		{name: "a scheduler", code: answer.VictimsTerminating, exit: 3, first: "research/a is being preempted", build: leaving("PreemptionByScheduler")},
	})
}

// A pod is charged for what it has until its kubelet has given it less.
func TestResizing(t *testing.T) {
	shrinks := func(c *clustertest.Cluster, to, cond string) {
		c.Nodes(2, 8).ServesWith("web", 0, to, "n1", "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "48" }))
		for _, p := range c.S.Pods {
			if p.Namespace == "serving" {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, Resources: &corev1.ResourceRequirements{Requests: clustertest.List("cpu", "64")}}}
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: cond})
			}
		}
	}
	check(t, []testCase{
		{name: "is enough", code: answer.InsufficientCPU, exit: 3, first: "; Deployment serving/web is being resized from 128 to 32 cpu, and then it fits$", build: func(c *clustertest.Cluster) { shrinks(c, "16", "") }},
		{name: "is not enough", code: answer.NodesBusy, exit: 5, not: []string{"being resized"}, build: func(c *clustertest.Cluster) { shrinks(c, "60", "") }},
		{name: "fails", code: answer.NodesBusy, exit: 5, not: []string{"being resized"}, build: func(c *clustertest.Cluster) { shrinks(c, "16", corev1.PodReasonError) }},
	})
}

// A pod is charged for what it is to have while its kubelet waits for room to give it that.
func TestDeferredResize(t *testing.T) {
	grows := func(c *clustertest.Cluster, namespace, reason, cpu string) {
		c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.CPU = cpu }))
		for _, n := range []string{"n1", "n2"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-" + n, UID: types.UID(n)}, Spec: corev1.PodSpec{NodeName: n, Containers: []corev1.Container{{Name: "cache",
				Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "64"), Limits: clustertest.List("cpu", "64")}}}}}
			has := clustertest.List("cpu", "16")
			if n == "n1" {
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: has, Limits: has}
			}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "cache", AllocatedResources: has, Resources: &corev1.ResourceRequirements{Requests: has, Limits: has}}}}
			if n == "n2" {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: clustertest.Ago(50 * time.Minute)}}
			}
			c.Put(p)
		}
	}
	check(t, []testCase{
		{name: "of another namespace", code: answer.NodesBusy, exit: 5, fix: "take back the deferred resize of default/cache-n2 to 16 cpu",
			wantText: []string{"Pod default/cache-n2 on n2 has 16 cpu and is charged for 64 cpu: its kubelet has deferred that resize, for 50m"}, build: func(c *clustertest.Cluster) { grows(c, "default", corev1.PodReasonDeferred, "48") }},
		{name: "of its own namespace", code: answer.NodesBusy, exit: 5, fix: "take back the deferred resize of team/cache-n2", build: func(c *clustertest.Cluster) { grows(c, "team", corev1.PodReasonDeferred, "48") }},
		{name: "is not what is in the way", code: answer.TooBig, exit: 6, not: []string{"deferred"}, build: func(c *clustertest.Cluster) { grows(c, "default", corev1.PodReasonDeferred, "200") }},
		{name: "can never be, and is not charged", code: answer.Fits, exit: 3, not: []string{"deferred"}, build: func(c *clustertest.Cluster) { grows(c, "default", corev1.PodReasonInfeasible, "48") }},
	})
	got := diagnose(t, func(c *clustertest.Cluster) { grows(c, "default", corev1.PodReasonDeferred, "48") }, stages.Options{})
	for _, fix := range got.Primary.Fixes {
		if fix.Change["pods"] == nil {
			continue
		}
		want := `kubectl -n default patch pod cache-n2 --subresource resize -p '{"spec":{"containers":[{"name":"cache","resources":{"limits":{"cpu":"16"},"requests":{"cpu":"16"}}}]}}'`
		if fix.Command != want {
			t.Errorf("got %s, want %s", fix.Command, want)
		}
		c := clustertest.New()
		grows(c, "default", corev1.PodReasonDeferred, "48")
		v := view.New(fix.Apply(c.Done()))
		job, err := v.Find(view.Query{Namespace: "team", Name: "gang"})
		if err != nil {
			t.Fatal(err)
		}
		if after := stages.Evaluate(context.Background(), v, job, stages.Options{}); after.Primary == nil || after.Primary.Code != answer.Fits {
			t.Errorf("it does not fit after that: %v", after.Primary)
		}
	}
}

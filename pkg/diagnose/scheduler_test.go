package diagnose

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What the scheduler has just reported counts against a computation that does not find it, in whatever words.
func TestSchedulerDisagrees(t *testing.T) {
	reports := func(busy bool, message string, ago time.Duration) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			if busy {
				c.Runs("other", 8, "n1", "n2")
			}
			c.Add(waiting(2, 8))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", message, ago)
		}
	}
	less, sure := []string{"reported otherwise", "heuristic"}, []string{"reported otherwise", "heuristic"}
	tests := []scenario{
		{name: "it fits, and a quota of its own is exceeded", code: answer.Fits, exit: 3, wantText: less, build: reports(false, "PodGroup team/gang gets no room in its own words", 10*time.Second)},
		{name: "it is busy, and the scheduler sees taints", code: answer.NodesBusy, exit: 3, wantText: less, build: reports(true, "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", 10*time.Second)},
		{name: "it is busy", code: answer.NodesBusy, exit: 3, notText: sure, build: reports(true, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 10*time.Second)},
		{name: "it is busy, and other nodes have taints", code: answer.NodesBusy, exit: 3, notText: sure, build: reports(true, "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {a: b}.", 10*time.Second)},
		{name: "a rule keeps it off, as the scheduler has it", code: answer.NodesBusy, exit: 5, notText: sure, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			port := []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
			c.Serves("web", 0, "n1", "n2")
			for _, p := range c.S.Pods {
				p.Spec.Containers[0].Ports = port
			}
			g := waiting(2, 8)
			g.Spec = func(s *corev1.PodSpec) { s.Containers[0].Ports = port }
			c.Add(g)
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.", 10*time.Second)
		}},
		{name: "that was long ago", code: answer.NodesBusy, exit: 3, notText: sure, build: reports(true, "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}.", 10*time.Minute)},
	}
	for _, s := range tests {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// What was reported of a gang before it ran is compared with nothing.
func TestSchedulerReportedBefore(t *testing.T) {
	c := clustertest.New()
	g := waiting(2, 8)
	g.Nodes = []string{"n1", "n2"}
	c.Nodes(2, 8).Add(g)
	c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", time.Minute)
	a, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Verdict != answer.Running || a.Scheduler == nil || a.Scheduler.Agrees != nil || len(a.Notes) > 0 {
		t.Errorf("%s, %+v, %q", a.Verdict, a.Scheduler, a.Notes)
	}
}

// A what-if is not what the scheduler has just reported of a quota, and where that is all that is known of one, nothing can be tried.
func TestQuotaOfTheScheduler(t *testing.T) {
	quota := func(most string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": "team", "name": "eq"}, "spec": map[string]any{"max": map[string]any{"nvidia.com/gpu": most}}})
			c.Nodes(4, 8).Add(waiting(2, 8))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "pod gang-worker-0 is rejected in PreFilter because ElasticQuota eq is more than Max", 5*time.Second)
		}
	}
	for _, s := range []scenario{
		{name: "all that is known is its report", code: answer.QueueQuota, exit: 3, never: []answer.ActionKind{answer.Fewer, answer.Reshape, answer.Trim, answer.AddNodes}, wantText: []string{"inferred"}, build: quota("32")},
		{name: "its numbers are known", code: answer.QueueQuota, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Quota}, wantText: []string{"raise max of nvidia.com/gpu in ElasticQuota eq to 24"}, notText: []string{"and then it waits"}, build: func(c *clustertest.Cluster) {
			const plugins = "scheduler-plugins-scheduler"
			c.Schedules(plugins).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Scheduler: plugins, Nodes: []string{"n4"}})
			c.GangScheduler("").Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": "team", "name": "eq"}, "spec": map[string]any{"max": map[string]any{"nvidia.com/gpu": "16"}}})
			g := waiting(2, 8)
			g.Scheduler = plugins
			c.Nodes(4, 8).Add(g).Event("Pod", "team", "gang-worker-0", plugins, "FailedScheduling", "pod gang-worker-0 is rejected in PreFilter because ElasticQuota eq is more than Max", 5*time.Second)
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

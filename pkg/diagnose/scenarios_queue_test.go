package diagnose

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func groupKind(group string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: "PodGroup"}
}

func inQueue(name string) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Volcano, g.Missing = name, g.Workers }
}

// kueue puts the gang under Kueue, in a ClusterQueue with so many GPUs.
func kueue(c *clustertest.Cluster, gpus, strategy string) {
	c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": map[string]any{"namespace": "team", "name": "lq"}, "spec": map[string]any{"clusterQueue": "cq"}})
	flavor := map[string]any{"name": "f", "resources": []any{map[string]any{"name": "nvidia.com/gpu", "nominalQuota": gpus}}}
	c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": map[string]any{"name": "cq"},
		"spec": map[string]any{"queueingStrategy": strategy, "stopPolicy": "None", "resourceGroups": []any{map[string]any{"coveredResources": []any{"nvidia.com/gpu"}, "flavors": []any{flavor}}}}})
}

// kueueWorkload is Kueue's object for a job; used is what it was admitted with, "" if it waits.
func kueueWorkload(c *clustertest.Cluster, job string, age time.Duration, used string) map[string]any {
	wl := map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": map[string]any{"namespace": "team", "name": "wl-" + job,
		"creationTimestamp": clustertest.Now.Add(-age).Format(time.RFC3339),
		"ownerReferences":   []any{map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job, "uid": "TFJob:team/" + job, "controller": true}}},
		"spec": map[string]any{"queueName": "lq", "podSets": []any{}}, "status": map[string]any{}}
	if used != "" {
		wl["status"] = map[string]any{"admission": map[string]any{"clusterQueue": "cq", "podSetAssignments": []any{map[string]any{"flavors": map[string]any{"nvidia.com/gpu": "f"}, "resourceUsage": map[string]any{"nvidia.com/gpu": used}}}},
			"conditions": []any{map[string]any{"type": "Admitted", "status": "True"}}}
	}
	c.Object(wl)
	return wl
}

func kueued(g *clustertest.Gang) {
	g.Missing, g.NoGroup = g.Workers, true
	g.Job = func(job map[string]any) {
		set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(job)
		set(true, "spec", "runPolicy", "suspend")(job)
	}
}

func queueScenarios() []scenario {
	return []scenario{
		{name: "no such queue", code: answer.QueueNotFound, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"vision"}, build: func(c *clustertest.Cluster) {
			c.Queue("vision", "Open", nil)
			c.Nodes(2, 8).Add(with(waiting(2, 8), inQueue("visoin")))
		}},
		{name: "queue closed", code: answer.QueueClosed, exit: 5, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "queue has children", code: answer.QueueNotLeaf, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			set("q", "spec", "parent")(c.Queue("child", "Open", nil).Object)
			c.Nodes(2, 8).Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "capability used", code: answer.QueueQuota, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Quota, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "16"})
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Volcano: "q"}).Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "capability of the parent used", code: answer.QueueQuota, exit: 3, wantText: []string{"queue root-q"}, build: func(c *clustertest.Cluster) {
			c.Queue("root-q", "Open", map[string]any{"nvidia.com/gpu": "16"})
			set("root-q", "spec", "parent")(c.Queue("a", "Open", nil).Object)
			set("root-q", "spec", "parent")(c.Queue("b", "Open", nil).Object)
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Volcano: "a"}).Add(with(waiting(2, 8), inQueue("b")))
		}},
		{name: "capability below the gang", code: answer.QueueTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota, answer.Fewer}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "8"})
			c.Nodes(4, 8).Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "reserved for a gang that cannot start", code: answer.ReservedByStuck, exit: 5, offers: []answer.ActionKind{answer.Evict}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "q", Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }}).
				Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "reserved for a Job whose group has another name", code: answer.ReservedByStuck, exit: 5, offers: []answer.ActionKind{answer.Evict}, wantText: []string{"kubectl -n team delete job.batch/stuck"}, notText: []string{"batchjob"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "stuck", Kind: "Job", Workers: 2, GPUs: 8, Volcano: "q", Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }}).
				Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "reserved for a gang that starts", code: answer.ReservedByOthers, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "first", Workers: 2, GPUs: 8, Volcano: "q", Age: 30 * time.Second}).Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "kueue: quota used", code: answer.KueueQuota, exit: 3, offers: []answer.ActionKind{answer.Quota, answer.Fewer, answer.Wait}, build: func(c *clustertest.Cluster) {
			kueue(c, "16", "BestEffortFIFO")
			kueueWorkload(c, "other", time.Hour, "8")
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}).Add(with(waiting(2, 8), kueued))
			kueueWorkload(c, "gang", time.Minute, "")
		}},
		{name: "kueue: quota below the gang", code: answer.QueueTooSmall, exit: 6, build: func(c *clustertest.Cluster) {
			kueue(c, "8", "BestEffortFIFO")
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "kueue: a Job that may be admitted in part", code: answer.KueueQuota, exit: 3, notText: []string{"never"}, build: func(c *clustertest.Cluster) {
			kueue(c, "16", "BestEffortFIFO")
			kueueWorkload(c, "other", time.Hour, "8")
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}).Add(clustertest.Gang{Name: "gang", Kind: "Job", Workers: 4, GPUs: 8, Missing: 4, NoGroup: true, BatchJob: func(j *batchv1.Job) {
				suspend := true
				j.Spec.Suspend = &suspend
				j.Labels, j.Annotations = map[string]string{"kueue.x-k8s.io/queue-name": "lq"}, map[string]string{"kueue.x-k8s.io/job-min-parallelism": "2"}
			}})
		}},
		{name: "kueue: a Job that may be admitted in part, and not with so few", code: answer.QueueTooSmall, exit: 6, offers: []answer.ActionKind{answer.Fewer}, never: []answer.ActionKind{answer.Reshape},
			wantText: []string{"start with 2 of its 4 members, and need no more: a minimum of 2 instead of 3", "gangctl resize gang --min-available 2"}, build: inPart("3")},
		{name: "kueue: a Job that is admitted in part", code: answer.Fits, exit: 3, wantText: []string{"Kueue starts it with 2 of its 4 members"}, build: inPart("2")},
		{name: "kueue: cohort lends", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			kueue(c, "8", "BestEffortFIFO")
			set("pool", "spec", "cohort")(c.S.Custom[kueueKind("ClusterQueue")][0].Object)
			flavor := map[string]any{"name": "f", "resources": []any{map[string]any{"name": "nvidia.com/gpu", "nominalQuota": "8"}}}
			c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": map[string]any{"name": "lender"}, "spec": map[string]any{"cohort": "pool", "resourceGroups": []any{map[string]any{"flavors": []any{flavor}}}}})
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "kueue: no such queue", code: answer.QueueNotFound, exit: 4, build: func(c *clustertest.Cluster) {
			c.S.Server.Resources = append(c.S.Server.Resources, "workloads.kueue.x-k8s.io/v1beta2")
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "kueue: stopped", code: answer.QueueClosed, exit: 5, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			set("Hold", "spec", "stopPolicy")(c.S.Custom[kueueKind("ClusterQueue")][0].Object)
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "kueue: admission check", code: answer.KueueCheck, exit: 3, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			set(map[string]any{"conditions": []any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)},
				"admissionChecks": []any{map[string]any{"name": "prov", "state": "Pending", "message": "waiting for nodes"}}}, "status")(kueueWorkload(c, "gang", time.Minute, ""))
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "kueue: switched off", code: answer.KueueInactive, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			set(false, "spec", "active")(kueueWorkload(c, "gang", time.Minute, ""))
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "volcano: strict order", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) {
			set("fifo", "spec", "dequeueStrategy")(c.Queue("q", "Open", nil).Object)
			c.Nodes(4, 8).Runs("runs", 8, "n1").Add(clustertest.Gang{Name: "older", Workers: 4, GPUs: 8, Volcano: "q", Missing: 4, Age: time.Hour}).Add(with(waiting(1, 8), inQueue("q")))
		}},
	}
}

// inPart has a Job of 4 members with 8 GPUs each, of which Kueue may admit some, in a queue with quota for two.
func inPart(least string) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		kueue(c, "16", "BestEffortFIFO")
		c.Nodes(4, 8).Add(clustertest.Gang{Name: "gang", Kind: "Job", Workers: 4, GPUs: 8, Missing: 4, NoGroup: true, Age: 20 * time.Second, BatchJob: func(j *batchv1.Job) {
			suspend := true
			j.Spec.Suspend = &suspend
			j.Labels, j.Annotations = map[string]string{"kueue.x-k8s.io/queue-name": "lq"}, map[string]string{"kueue.x-k8s.io/job-min-parallelism": least}
		}})
	}
}

func kueueKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "kueue.x-k8s.io", Kind: kind}
}

func schedulerScenarios() []scenario {
	return []scenario{
		{name: "no scheduler serves the name", code: answer.SchedulerNotFound, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Spec = func(p *corev1.PodSpec) { p.SchedulerName = "gnag" } }))
		}},
		{name: "scheduler is dead", code: answer.SchedulerDown, exit: 5, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"12m"}, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Lease("gang-scheduler", 12*time.Minute)
			c.Nodes(2, 8).Add(waiting(2, 8))
		}},
		{name: "scheduling gate", code: answer.SchedulingGated, exit: 5, wantText: []string{"example.com/wait"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Pod = func(_ int, p *corev1.Pod) {
					p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
				}
			}))
		}},
		{name: "fits, and is new", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Age = 4 * time.Second }))
		}},
		{name: "fits, and no scheduler tries", code: answer.FitsNotPlaced, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Age = 20 * time.Minute }))
			c.Event("Pod", "team", "gang-worker-0", "gang", "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 19*time.Minute)
		}, wantText: []string{"19m", "stale"}},
		{name: "fits, whatever the scheduler reports", code: answer.Fits, exit: 3, wantText: []string{"disagrees", "heuristic"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			c.Event("Pod", "team", "gang-worker-0", "gang", "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 3*time.Second)
		}},
		{name: "what the scheduler lacks is not what is the matter", code: answer.NSQuotaTooSmall, exit: 6, wantText: []string{"reported .3s ago.: 0/2 nodes"}, build: func(c *clustertest.Cluster) {
			hard := clustertest.List("requests.nvidia.com/gpu", "8")
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: hard}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing = 1 }))
			c.Event("Pod", "team", "gang-worker-0", "gang", "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 3*time.Second)
		}},
	}
}

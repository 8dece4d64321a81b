package stages_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// batched makes it a batch Job that waits for Kueue.
func batched(g *clustertest.Gang) {
	g.Kind, g.NoGroup, g.Missing = "Job", true, g.Workers
	g.BatchJob = func(j *batchv1.Job) {
		j.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "lq"}
		j.Spec.Suspend = new(true)
	}
}

// What the numbers of an answer are of.
func TestWhatNumbersAreOf(t *testing.T) {
	quota := func(c *clustertest.Cluster, hard, used corev1.ResourceList) {
		c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}})
	}
	check(t, []testCase{
		{name: "what its own members have is no part of what the cluster has", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.TooBig},
			wantText: []string{"it needs 2 workers with 8 GPUs each, 16 in all, and besides the 16 GPUs of its members with a node the whole cluster has 8 GPUs on 3 nodes"}, build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(gangOf(4, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
			}},
		{name: "Kueue admits all pods of a Job", code: answer.NodesBusy, exit: 3, first: "needs 2 workers with 8 GPUs each, 16 in all", build: func(c *clustertest.Cluster) {
			pool(c, "32")
			c.Runs("a", 8, "n1", "n2", "n3").Add(gangOf(2, 8, batched))
		}},
		{name: "pods of a Job without Kueue count one by one", code: answer.NodesBusy, exit: 3, first: "needs 1 worker with 8 GPUs", wantText: []string{"nothing declares its 2 pods a gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "so a quota is for the first of them", code: answer.NSQuota, exit: 3, first: "2 of 2 pod slots used, the first of its 2 members needs 1", build: func(c *clustertest.Cluster) {
			quota(c, clustertest.List("pods", "2"), clustertest.List("pods", "2"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, NoGroup: true, Nodes: []string{"n1", "n2"}}).Add(gangOf(2, 8, ungrouped, none, func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "a default of a LimitRange", code: answer.NSQuotaTooSmall, exit: 6, first: "allows 10 cpu in all, and the gang needs 16", wantText: []string{"container tensorflow states no cpu: 8 is the default of LimitRange defs"}, build: func(c *clustertest.Cluster) {
			quota(c, clustertest.List("requests.cpu", "10"), clustertest.List("requests.cpu", "0"))
			c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "defs"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: clustertest.List("cpu", "8")}}}})
			c.Nodes(4, 8).Add(gangOf(2, 8, none, spec(onlyGPUs)))
		}},
		{name: "each flavor has half", code: answer.QueueTooSmall, exit: 6, wantText: []string{"of its flavors a has 16 of 16, b has 16 of 16 left; all pods of Worker are of one"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "a", Resource: "nvidia.com/gpu", Nominal: "16"}, clustertest.Quota{Flavor: "b", Resource: "nvidia.com/gpu", Nominal: "16"})
			c.Add(gangOf(4, 8, kueued))
		}},
		{name: "what a queue of KAI deserves", code: answer.NodesBusy, exit: 3, wantText: []string{"queue q uses 0 of the 8 GPUs that it deserves, and queue p 16 of 8: KAI takes that back for it, from gangs that can be preempted"}, build: func(c *clustertest.Cluster) {
			for _, name := range []string{"p", "q"} {
				c.Object(map[string]any{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": map[string]any{"name": name}, "spec": map[string]any{"resources": map[string]any{"gpu": map[string]any{"quota": int64(8), "limit": int64(-1)}}}})
			}
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Dialect: gang.KAI, Queue: "p", Scheduler: "kai-scheduler", Nodes: []string{"n1", "n2"}}).Add(gangOf(1, 8, speaks(c, gang.KAI, "kai-scheduler")))
		}},
		{name: "what a queue deserves", code: answer.NodesBusy, exit: 3, wantText: []string{"queue q uses 0 of the 8 GPUs that it deserves, and queue p 16 of 8: Volcano takes that back only with action reclaim"}, build: func(c *clustertest.Cluster) {
			for _, name := range []string{"p", "q"} {
				set(map[string]any{"nvidia.com/gpu": "8"}, "spec", "deserved")(c.Queue(name, "Open", nil).Object)
			}
			c.Schedules("volcano")
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Volcano: "p", Scheduler: "volcano", Nodes: []string{"n1", "n2"}}).Add(gangOf(1, 8, scheduledBy("volcano"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "what a queue has above that, and nothing is taken back from it", code: answer.NodesBusy, exit: 3, wantText: []string{"queue q uses 0 of the 8 GPUs that it deserves, and queue p 16 of 8: Volcano never takes that back, as its spec.reclaimable is false"}, not: []string{"action reclaim"}, build: func(c *clustertest.Cluster) {
			for _, name := range []string{"p", "q"} {
				queue := c.Queue(name, "Open", nil)
				set(map[string]any{"nvidia.com/gpu": "8"}, "spec", "deserved")(queue.Object)
				set(name == "q", "spec", "reclaimable")(queue.Object)
			}
			c.Schedules("volcano")
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Volcano: "p", Scheduler: "volcano", Nodes: []string{"n1", "n2"}}).Add(gangOf(1, 8, scheduledBy("volcano"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
	})
}

// admitted makes the gang one that Kueue has admitted to flavor f, with its pods.
func admitted(c *clustertest.Cluster, g clustertest.Gang) *unstructured.Unstructured {
	c.Add(g)
	u := c.Workload("gang", "lq", time.Hour)
	clustertest.PodSet(u, "worker", int64(g.Workers), clustertest.List("nvidia.com/gpu", "8"), nil)
	clustertest.Admit(u, "cq", "f", "16")
	return u
}

// What Kueue adds to a job, knows of it, or does without it.
func TestWhatKueueAdds(t *testing.T) {
	select100 := spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "h100"} })
	labelled := job(func(j map[string]any) {
		set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
	})
	check(t, []testCase{
		{name: "a label that no node has is that of the flavor", code: answer.SelectorNoMatch, exit: 5, first: "no node has the label pool=h100, which ResourceFlavor f of Kueue has its pods require", not: []string{"fix: "}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Flavor("f", "pool", "h100")
			admitted(c, gangOf(2, 8, ungrouped, labelled, select100))
		}},
		{name: "a label that no node has is that of the job", code: answer.SelectorNoMatch, exit: 4, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Flavor("f", "pool", "h100")
			u := admitted(c, gangOf(2, 8, ungrouped, labelled, select100))
			set([]any{map[string]any{"name": "worker", "count": int64(2), "template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"pool": "h100"}}}}}, "spec", "podSets")(u.Object)
		}},
		{name: "a resource without quota can be left out", code: answer.QueueTooSmall, exit: 6, first: "no quota for rdma/hca at all, and [Ww]orker requests 2 rdma/hca, 1 for each of 2 members$", fix: "request no rdma/hca", wantText: []string{"excludeResourcePrefixes"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			for _, n := range c.S.Nodes {
				n.Status.Allocatable["rdma/hca"], n.Status.Capacity["rdma/hca"] = resource.MustParse("8"), resource.MustParse("8")
			}
			u := waitsInKueue(c, 2, 8, spec(func(p *corev1.PodSpec) {
				p.Containers[0].Resources.Requests["rdma/hca"], p.Containers[0].Resources.Limits["rdma/hca"] = resource.MustParse("1"), resource.MustParse("1")
			}))
			set([]any{clustertest.Condition("QuotaReserved", "False", "NoMatchingFlavor", "resource rdma/hca unavailable in ClusterQueue", time.Minute)}, "status", "conditions")(u.Object)
		}},
		{name: "Kueue does not manage the job", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.NodesBusy}, wantText: []string{"Kueue does not manage it: it is not suspended, has pods and no Workload"}, never: []answer.Code{answer.KueueQuota}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", gpuQuota("8"))
			c.Runs("a", 8, "n2").Add(gangOf(2, 8, ungrouped, labelled, half))
		}},
		{name: "what is provisioned", code: answer.KueueCheck, exit: 3, wantText: []string{"ProvisioningRequest gang-dws-1: Provisioned is False, reported 3m ago: Waiting for resources"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "dws"}, "spec": map[string]any{"controllerName": "kueue.x-k8s.io/provisioning-request"}})
			u := waitsInKueue(c, 2, 8)
			u.SetUID("w")
			clustertest.Admit(u, "cq", "f", "16")
			set([]any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)}, "status", "conditions")(u.Object)
			set([]any{map[string]any{"name": "dws", "state": "Pending"}}, "status", "admissionChecks")(u.Object)
			request := c.Object(map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": map[string]any{"namespace": "team", "name": "gang-dws-1"}, "status": map[string]any{"conditions": []any{
				clustertest.Condition("Accepted", "True", "Queued", "queued", 10*time.Minute), clustertest.Condition("Provisioned", "False", "ResourcePoolExhausted", "Waiting for resources.", 3*time.Minute)}}})
			request.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kueue.x-k8s.io/v1beta1", Kind: "Workload", Name: u.GetName(), UID: "w", Controller: new(true)}})
		}},
		{name: "a check is not active", code: answer.QueueClosed, exit: 5, wantText: []string{"AdmissionCheck mk is not active: Inactive clusters: .east.", "MultiKueueCluster east is not active: dial tcp"}, build: func(c *clustertest.Cluster) {
			q := pool(c, "16")
			set([]any{"mk"}, "spec", "admissionChecks")(q.Object)
			set([]any{clustertest.Condition("Active", "False", "AdmissionCheckInactive", "references inactive AdmissionCheck(s): mk", time.Hour)}, "status", "conditions")(q.Object)
			of := func(kind, name, message string, spec map[string]any) {
				c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
					"status": map[string]any{"conditions": []any{clustertest.Condition("Active", "False", "Failed", message, time.Hour)}}})
			}
			of("AdmissionCheck", "mk", "Inactive clusters: [east]", map[string]any{"controllerName": "kueue.x-k8s.io/multikueue"})
			of("MultiKueueCluster", "east", "dial tcp 10.0.0.1:6443: i/o timeout", map[string]any{})
			waitsInKueue(c, 2, 8)
		}},
		{name: "whom it has preempted is leaving", code: answer.VictimsTerminating, exit: 3, first: "Kueue has preempted research/a for it, and waits until its pods are gone", wantText: []string{"their grace periods end at 14:00, in 20s at most"}, not: []string{"fix: raise"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Runs("a", 8, "n1")
			p := c.S.Pods[len(c.S.Pods)-1]
			until := metav1.NewTime(clustertest.Now.Add(20 * time.Second))
			p.DeletionTimestamp = &until
			u := c.Workload("a", "lq", time.Hour)
			u.SetNamespace("research")
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.GetControllerOf(p)})
			clustertest.Admit(u, "cq", "f", "8")
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			set(append(conditions, clustertest.Condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload (UID: w1, JobUID: UNKNOWN) due to prioritization in the ClusterQueue", 10*time.Second)), "status", "conditions")(u.Object)
			waitsInKueue(c, 2, 8).SetUID("w1")
		}},
		{name: "it runs in another cluster", exit: 0, wantText: []string{"dispatched it to cluster east, where 2 of 2 members run, as is reported"}, not: []string{"are not up", "has no pod"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued, func(g *clustertest.Gang) {
				held := g.Job
				g.Job = func(j map[string]any) {
					held(j)
					set("kueue.x-k8s.io/multikueue", "spec", "runPolicy", "managedBy")(j)
					set(map[string]any{"Worker": map[string]any{"active": int64(2)}}, "status", "replicaStatuses")(j)
				}
			}))
			u := c.Workload("gang", "lq", time.Hour)
			clustertest.Admit(u, "cq", "f", "16")
			set("east", "status", "clusterName")(u.Object)
		}},
		{name: "every namespace that uses the min of all", code: answer.QueueQuota, exit: 3, wantText: []string{"team/other uses 8", "research/a uses 8"}, build: func(c *clustertest.Cluster) {
			for namespace, least := range map[string]string{"team": "8", "research": "8"} {
				c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": namespace, "name": "eq"},
					"spec": map[string]any{"min": map[string]any{"nvidia.com/gpu": least}, "max": map[string]any{"nvidia.com/gpu": "32"}}})
			}
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n2"}}).Add(gangOf(1, 8, speaks(c, gang.SchedulerPlugins, coscheduling)))
		}},
	})
}

// Where the job itself states too much, its operator writes that into its PodGroup again: it is changed there.
func TestMinResourcesOfJob(t *testing.T) {
	check(t, []testCase{
		{name: "of the job", code: answer.QueueQuota, exit: 3, fix: "lower nvidia.com/gpu in minResources of the job's schedulingPolicy to 16", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), states("64"), job(set("64", "spec", "runPolicy", "schedulingPolicy", "minResources", "nvidia.com/gpu"))))
		}},
		{name: "of the group alone", code: answer.QueueQuota, exit: 3, fix: "lower nvidia.com/gpu in minResources of PodGroup gang to 16", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), states("64")))
		}},
	})
}

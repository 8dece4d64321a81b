package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// inQueue waits for a queue of Volcano to admit it: no pods are made before.
func inQueue(name string) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { none(g); g.Volcano = name }
}

// reserves makes it a gang that queue q of Volcano has admitted, with other minResources, or none.
func reserves(resources map[string]any) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) {
		g.Volcano = "q"
		g.Group = func(group map[string]any) {
			spec := group["spec"].(map[string]any)
			if delete(spec, "minResources"); resources != nil {
				spec["minResources"] = resources
			}
		}
	}
}

// states makes minResources of its PodGroup state so many GPUs, whatever its members request.
func states(gpus string) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Group = set(gpus, "spec", "minResources", "nvidia.com/gpu") }
}

// guarantee guarantees GPUs to a queue of Volcano.
func guarantee(queue *unstructured.Unstructured, gpus string) {
	set(map[string]any{"nvidia.com/gpu": gpus}, "spec", "guarantee", "resource")(queue.Object)
}

// nowhere makes pods without a node select nodes that are not there.
func nowhere(_ int, p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		p.Spec.NodeSelector = map[string]string{"class": "b200"}
	}
}

func young(g *clustertest.Gang) { g.Age = 20 * time.Second }

func TestVolcanoQueue(t *testing.T) {
	gpus := func(n string) map[string]any { return map[string]any{"nvidia.com/gpu": n} }
	check(t, []testCase{
		{name: "it is short of two", code: answer.QueueQuota, exit: 3, first: "queue q has 8 of 24 GPUs left, and the gang needs 16", also: []answer.Code{answer.QueueQuota}, wantText: []string{"queue q has 8 of 24 cpu left, and the gang needs 16"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "24", "cpu": "24"})
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Volcano: "q", Nodes: []string{"n1", "n2"}}).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "no queue of the name", code: answer.QueueNotFound, exit: 4, first: `"visoin" does not exist.*default, vision`, wantText: []string{"did you mean vision"}, fix: "use queue vision", build: func(c *clustertest.Cluster) {
			c.Queue("vision", "Open", nil)
			c.Queue("default", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("visoin")))
		}},
		{name: "queues may not be listed", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueNotFound}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "queues.scheduling.volcano.sh"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q"), young))
		}},
		{name: "queues may not be listed, and an event reports that it is closed", code: answer.QueueClosed, exit: 5, first: "queue q does not take gang: queue q is Closed", wantText: []string{"reported 20s ago; the queue itself is not seen"}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "queues.scheduling.volcano.sh"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q")))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "queue q is Closed", 20*time.Second)
		}},
		{name: "queues may not be listed, and a condition reports that it is closed", code: answer.QueueClosed, exit: 5, wantText: []string{"a condition reports it, for 30m; the queue"}, not: []string{"reported 0s ago"}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "queues.scheduling.volcano.sh"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q"), func(g *clustertest.Gang) {
				closed := clustertest.Condition("Unschedulable", "True", "NotEnoughResources", "queue q is Closed", 30*time.Minute)
				g.Group = set([]any{closed}, "status", "conditions")
			}))
		}},
		{name: "queues may not be listed, and what an event reported is old", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueClosed}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "queues.scheduling.volcano.sh"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q"), young))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "queue q is Closed", 40*time.Minute)
		}},
		{name: "queues may not be listed, and the operator reports that the group was refused", code: answer.QueueNotFound, exit: 4, first: "the PodGroup of gang cannot be created in queue q: .*not found", never: []answer.Code{answer.PodGroupMissing}, build: func(c *clustertest.Cluster) {
			c.Schedules("volcano").GangScheduler("volcano")
			c.S.Denied = []snapshot.Denial{{Resource: "queues.scheduling.volcano.sh"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, scheduledBy("volcano"), job(set("q", "spec", "runPolicy", "schedulingPolicy", "queue"))))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePodGroup", `admission webhook "validatepodgroup.volcano.sh" denied the request: unable to find queue: queue.scheduling.volcano.sh "q" not found`, 20*time.Second)
		}},
		{name: "what was reported of a queue that is seen to be open", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueClosed}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q"), young))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "queue q is Closed", 20*time.Second)
		}},
		{name: "a queue without a status is open", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			delete(c.Queue("q", "Open", nil).Object, "status")
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q"), young))
		}},
		{name: "closing", code: answer.QueueClosed, exit: 5, first: "queue q is Closing", fix: "open queue q", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closing", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "closed after the gang was admitted", code: answer.QueueClosed, exit: 5, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "closed and matching nothing", code: answer.QueueClosed, exit: 5, also: []answer.Code{answer.SelectorNoMatch}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q"), spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} })))
		}},
		{name: "used by pods", code: answer.QueueQuota, exit: 3, first: "queue q has 8 of 16 GPUs left, and the gang needs 16: 8 are used", wantText: []string{"team/other uses 8", "together 24"}, fix: "to 24", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Volcano: "q"}).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "reserved for a gang that was admitted", code: answer.QueueQuota, exit: 3, first: "0 of 16", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Volcano: "q"}).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "another queue's gangs do not count", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Queue("p", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Volcano: "p", Nodes: []string{"n1", "n2"}}).Add(gangOf(2, 8, inQueue("q"), young))
		}},
		{name: "cpu is what is short", code: answer.QueueTooSmall, exit: 6, first: "8 cpu in all, and the gang needs 16", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"cpu": "8", "nvidia.com/gpu": "64"})
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "the minimum counts", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(gangOf(4, 8, inQueue("q"), young, func(g *clustertest.Gang) { g.Min = 2 }))
		}},
		{name: "the parent's parent is full", code: answer.QueueQuota, exit: 3, first: "queue company has 8 of 16", build: func(c *clustertest.Cluster) {
			c.Queue("company", "Open", gpus("16"))
			set("company", "spec", "parent")(c.Queue("dept", "Open", nil).Object)
			set("dept", "spec", "parent")(c.Queue("a", "Open", nil).Object)
			set("dept", "spec", "parent")(c.Queue("b", "Open", nil).Object)
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Volcano: "a"}).Add(gangOf(2, 8, inQueue("b")))
		}},
		{name: "an inner queue", code: answer.QueueNotLeaf, exit: 4, first: "dept has queues below it .a, b.", fix: "use queue a", build: func(c *clustertest.Cluster) {
			c.Queue("dept", "Open", nil)
			set("dept", "spec", "parent")(c.Queue("a", "Open", nil).Object)
			set("dept", "spec", "parent")(c.Queue("b", "Open", nil).Object)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("dept")))
		}},
		{name: "admitted already: what it holds is counted", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "admitted without minResources: nothing is reserved for it", code: answer.QueueQuota, exit: 3, first: "queue q has 0 of 16 GPUs left, and the gang needs 16", wantText: []string{"team/other uses 16"}, fix: "to 32", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Volcano: "q"}).Add(gangOf(2, 8, scheduledBy("volcano"), reserves(nil)))
		}},
		{name: "admitted with minResources that leave the device out", code: answer.QueueQuota, exit: 3, first: "queue q has 0 of 16 GPUs left", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Volcano: "q"}).Add(gangOf(2, 8, scheduledBy("volcano"), reserves(map[string]any{"cpu": "16"})))
		}},
		{name: "it runs in part, and its own use is no one else's", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.QueueQuota}, wantText: []string{"queue q has 0 of 16 GPUs left, and the gang needs 8: 16 are used", "the gang itself uses 8", "nvidia.com/gpu of queue q to 24"}, build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Volcano: "q"}).Add(gangOf(2, 8, scheduledBy("volcano"), reserves(nil), func(g *clustertest.Gang) { g.Nodes = []string{"n2"} }))
		}},
		{name: "it runs in part, and the whole is too much", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.QueueTooSmall}, wantText: []string{"queue q allows 8 GPUs in all, and the gang needs 16"}, build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("8"))
			c.Nodes(4, 8).Add(gangOf(2, 8, scheduledBy("volcano"), reserves(nil), func(g *clustertest.Gang) { g.Nodes = []string{"n2"} }))
		}},
		{name: "members that have done their work need no more", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.QueueQuota, answer.QueueTooSmall}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(gangOf(3, 8, reserves(nil), func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
				if i == 0 {
					p.Status.Phase = corev1.PodSucceeded
				}
			})))
		}},
		{name: "members of a Job that have done their work are no replicas of it any more", code: answer.QueueQuota, exit: 3, first: "queue q has 0 of 16 GPUs left, and the gang needs 16", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Volcano: "q"})
			c.Add(gangOf(4, 8, inQueue("q"), states("16"), func(g *clustertest.Gang) { g.Kind, g.Min, g.Pod, g.BatchJob = "Job", 4, indexed(2), waves(4, 4, 2) }))
		}},
		{name: "the second wave of a Job needs as much as the first", code: answer.QueueQuota, exit: 3, first: "queue q has 16 of 32 GPUs left, and the gang needs 32", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("32"))
			c.Nodes(6, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Volcano: "q"})
			c.Add(gangOf(8, 8, inQueue("q"), func(g *clustertest.Gang) { g.Kind, g.Min, g.Pod, g.BatchJob = "Job", 4, indexed(4), waves(4, 8, 4) }))
		}},
		{name: "the queue has room, and the scheduler reports it as overused", code: answer.ReservedByOthers, exit: 3, first: "has not admitted it.*5s ago.*overused", wantText: []string{"how the plugins of Volcano are configured", "nvidia.com/gpu: minResources of the PodGroup are 16, 0 of 32 are used"}, never: []answer.Code{answer.QueueQuota}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q")))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "resource in cluster is overused: overused nvidia.com/gpu", 5*time.Second)
		}},
		{name: "the cluster is in use, which is why the scheduler reports it as overused", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.QueueQuota},
			wantText: []string{`has not admitted it: GPUs requested 16, used 16, limit 19 .1.2 times the 16 GPUs of the cluster`}, build: func(c *clustertest.Cluster) {
				c.Queue("q", "Open", nil)
				c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, inQueue("q")))
				c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "resource in cluster is overused: overused nvidia.com/gpu", 5*time.Second)
			}},
		{name: "there is room for its members, and not for its minResources", code: answer.QueueQuota, exit: 3, fix: "minResources of PodGroup gang to 16",
			first: "admits PodGroups of up to 22 of the cluster's 32 GPUs now, and minResources of PodGroup gang are 24, of which its members need 16", build: func(c *clustertest.Cluster) {
				c.Queue("q", "Open", nil)
				c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, inQueue("q"), states("24")))
			}},
		{name: "nodes are in use, which the scheduler reports as overused", code: "INSUFFICIENT_memory", exit: 3, never: []answer.Code{answer.QueueQuota}, wantText: []string{"TFJob team/other holds 600Gi"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 1, Memory: "600Gi", Nodes: []string{"n1"}, Volcano: "q"}).Add(gangOf(4, 4, inQueue("q"), func(g *clustertest.Gang) { g.Memory = "400Gi" }))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "resource in cluster is overused: overused memory", 5*time.Second)
		}},
		{name: "the queue has room, and the scheduler reports that it has not", code: answer.QueueQuota, exit: 3, first: "has not admitted it.*5s ago.*insufficient", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q")))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "queue resource quota insufficient: insufficient nvidia.com/gpu", 5*time.Second)
		}},
		{name: "the queue has room, and the scheduler has reported for long that it has not", code: answer.QueueQuota, exit: 5, first: "insufficient nvidia.com/gpu; by its capability and by what it uses the queue has room", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), func(g *clustertest.Gang) { g.Age = time.Hour }))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "queue resource quota insufficient: insufficient nvidia.com/gpu", 5*time.Second).FirstTimestamp = clustertest.Ago(40 * time.Minute)
		}},
		{name: "which lists others than the gang requests", code: answer.QueueQuota, exit: 5, first: "by its capability and by what it uses the queue has room", wantText: []string{"the capability of queue q does not list nvidia.com/gpu: some releases"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"cpu": "640", "memory": "9Ti"})
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), func(g *clustertest.Gang) { g.Age = time.Hour }))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "queue resource quota insufficient", 5*time.Second).FirstTimestamp = clustertest.Ago(40 * time.Minute)
		}},
		{name: "it reported that long ago, and nothing since", code: answer.FitsNotPlaced, exit: 5, never: []answer.Code{answer.QueueQuota}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), func(g *clustertest.Gang) { g.Age = time.Hour }))
			c.Event("PodGroup", "team", "gang", "volcano", "Unschedulable", "resource in cluster is overused: overused nvidia.com/gpu", 40*time.Minute)
		}},
	})
}

// TestVolcanoAdmission is about what Volcano compares when it admits a PodGroup, and when it places its pods.
func TestVolcanoAdmission(t *testing.T) {
	gpus := func(n string) map[string]any { return map[string]any{"nvidia.com/gpu": n} }
	other := func(workers int, change func(*clustertest.Gang), nodes ...string) clustertest.Gang {
		g := clustertest.Gang{Name: "other", Workers: workers, GPUs: 8, Nodes: nodes, Volcano: "q"}
		change(&g)
		return g
	}
	same := func(*clustertest.Gang) {}
	check(t, []testCase{
		{name: "minResources state more than the queue allows, and the members request less", code: answer.QueueTooSmall, exit: 6,
			first: "queue q allows 16 GPUs in all, and minResources of PodGroup gang are 32, of which its members need 16", fix: "lower nvidia.com/gpu in minResources of PodGroup gang to 16", build: func(c *clustertest.Cluster) {
				c.Queue("q", "Open", gpus("16"))
				c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), states("32")))
			}},
		{name: "minResources state more than the cluster has", code: answer.QueueTooSmall, exit: 6,
			first: "queue q allows 32 GPUs in all, as many as the cluster has, and minResources of PodGroup gang are 64", fix: "minResources of PodGroup gang to 16", build: func(c *clustertest.Cluster) {
				c.Schedules("volcano")
				c.Queue("q", "Open", nil)
				c.Nodes(4, 8).Add(gangOf(2, 8, scheduledBy("volcano"), inQueue("q"), states("64")))
			}},
		{name: "the members request more than the cluster has: that is no matter of queues", code: answer.TooBig, exit: 6, never: []answer.Code{answer.QueueTooSmall}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			guarantee(c.Queue("prod", "Open", nil), "8")
			c.Nodes(4, 8).Add(gangOf(8, 8, inQueue("q")))
		}},
		{name: "minResources have what Volcano does not count", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"requests.nvidia.com/gpu": "8", "cpu": "0"})
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), young, func(g *clustertest.Gang) { g.Group = set("16", "spec", "minResources", "requests.nvidia.com/gpu") }))
		}},
		{name: "guaranteed to another queue", code: answer.QueueTooSmall, exit: 6,
			first: "queue q allows 8 GPUs in all, as of the 32 GPUs of the cluster 24 are guaranteed to prod, and the gang needs 16", fix: "lower the guarantee of nvidia.com/gpu of queue prod to 16", build: func(c *clustertest.Cluster) {
				c.Schedules("volcano")
				c.Queue("q", "Open", gpus("16"))
				guarantee(c.Queue("prod", "Open", nil), "24")
				c.Nodes(4, 8).Add(gangOf(2, 8, scheduledBy("volcano"), inQueue("q")))
			}},
		{name: "more than there is guaranteed to another queue", code: answer.QueueTooSmall, exit: 6, first: "queue q allows 0 GPUs in all", fix: "lower the guarantee of nvidia.com/gpu of queue prod to 16", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("16"))
			guarantee(c.Queue("prod", "Open", nil), "10000")
			c.Nodes(4, 8).Add(gangOf(2, 8, scheduledBy("volcano"), inQueue("q")))
		}},
		{name: "others use what is not guaranteed to another queue", code: answer.QueueQuota, exit: 3,
			first: "queue q has 8 of 24 GPUs left, as of the 32 GPUs of the cluster 8 are guaranteed to prod, and the gang needs 16: 16 are used", wantText: []string{"team/other uses 16"}, fix: "lower the guarantee of nvidia.com/gpu of queue prod to 0", build: func(c *clustertest.Cluster) {
				c.Schedules("volcano")
				c.Queue("q", "Open", nil)
				guarantee(c.Queue("prod", "Open", nil), "8")
				c.Nodes(4, 8).Add(other(2, same, "n1", "n2")).Add(gangOf(2, 8, scheduledBy("volcano"), inQueue("q")))
			}},
		{name: "its own guarantee is no one else's", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			guarantee(c.Queue("q", "Open", nil), "16")
			guarantee(c.Queue("prod", "Open", nil), "16")
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("q"), young))
		}},
		{name: "guaranteed to another queue below the same one", code: answer.QueueTooSmall, exit: 6, first: "queue b allows 8 GPUs in all, as of the 16 GPUs of queue company 8 are guaranteed to a,", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("company", "Open", gpus("16"))
			a := c.Queue("a", "Open", nil)
			set("company", "spec", "parent")(a.Object)
			set("company", "spec", "parent")(c.Queue("b", "Open", nil).Object)
			guarantee(a, "8")
			c.Nodes(4, 8).Add(gangOf(2, 8, scheduledBy("volcano"), inQueue("b")))
		}},
		{name: "above all queues of a hierarchy nothing is kept", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("company", "Open", nil)
			set("company", "spec", "parent")(c.Queue("a", "Open", nil).Object)
			guarantee(c.Queue("prod", "Open", nil), "24")
			c.Nodes(4, 8).Add(gangOf(2, 8, inQueue("a"), young))
		}},
		{name: "admitted, and others use what its pods need", code: answer.QueueQuota, exit: 3, first: "queue q has 0 of 16 GPUs left, and the gang needs 16: 16 are used", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(other(2, same, "n1", "n2")).Add(gangOf(2, 8, scheduledBy("volcano"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "admitted, and what is reserved for others does not keep its pods", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(other(2, young)).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "what others use above their minimum keeps its pods, though not the PodGroup", code: answer.QueueQuota, exit: 3, first: "queue q has 0 of 16 GPUs left", wantText: []string{"team/other uses 16"}, build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(other(2, func(g *clustertest.Gang) { g.Min = 1 }, "n1", "n2")).Add(gangOf(1, 8, scheduledBy("volcano"), inQueue("q")))
		}},
		{name: "reserved for one that runs with its minimum", code: answer.QueueQuota, exit: 3, first: "queue q has 0 of 16 GPUs left", wantText: []string{"team/other has 16 reserved and uses 8"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(other(2, func(g *clustertest.Gang) {
				g.Min = 1
				g.Group = func(group map[string]any) {
					set("16", "spec", "minResources", "nvidia.com/gpu")(group)
					set("Running", "status", "phase")(group)
				}
			}, "n1")).Add(gangOf(1, 8, inQueue("q")))
		}},
		{name: "admitted again, after a member was lost", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.QueueQuota}, wantText: []string{"queue q has 8 of 16 GPUs left, and the gang needs 16: 8 are used", "admits the PodGroup again"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", gpus("16"))
			c.Nodes(4, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Volcano, g.Nodes, g.Group = "q", []string{"n1"}, set("Pending", "status", "phase")
			}))
		}},
		{name: "more members than the queue takes pods", code: answer.QueueTooSmall, exit: 6, first: "queue q allows 1 pod slot in all, and the gang needs 2", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("q", "Open", map[string]any{"pods": "1"})
			c.Nodes(4, 8).Add(gangOf(2, 8, scheduledBy("volcano"), inQueue("q")))
		}},
	})
}

func TestReserved(t *testing.T) {
	stuck := func(change func(*clustertest.Gang)) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			other := clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "q"}
			change(&other)
			c.Nodes(2, 8).Add(other).Add(gangOf(2, 8, inQueue("q")))
		}
	}
	check(t, []testCase{
		{name: "for a gang that requests nodes that are not there", code: answer.ReservedByStuck, exit: 5, first: "16 GPUs are idle but reserved for team/stuck", wantText: []string{"class=b200"}, fix: "fix or delete team/stuck",
			build: stuck(func(g *clustertest.Gang) {
				g.Spec = func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }
			})},
		{name: "for a gang that reserves a part of what is idle", code: answer.ReservedByStuck, exit: 5, first: "16 of 24 GPUs that are idle are reserved for team/stuck, which can never start", build: func(c *clustertest.Cluster) {
			c.Node("n3", 8)
			stuck(func(g *clustertest.Gang) {
				g.Spec = func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }
			})(c)
		}},
		{name: "for a gang that waits for an administrator", code: answer.ReservedByStuck, exit: 5, first: "reserved for team/stuck, which does not start until an administrator acts", wantText: []string{"why stuck does not start: Deployment serving/llm holds 8 GPUs on n3 and never ends"}, build: func(c *clustertest.Cluster) {
			stuck(func(g *clustertest.Gang) {
				g.Workers, g.Spec = 1, func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }
			})(c)
			c.Node("n3", 8).Labels["class"] = "b200"
			c.Serves("llm", 8, "n3")
		}},
		{name: "for a gang whose job is gone", code: answer.ReservedByStuck, exit: 5, wantText: []string{"no job stands behind it"}, build: func(c *clustertest.Cluster) {
			stuck(func(g *clustertest.Gang) { g.Missing = 2 })(c)
			set(map[string]any{"phase": "Inqueue"}, "status")(c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0].Object)
			c.S.Custom[kindOf("kubeflow.org", "TFJob")] = c.S.Custom[kindOf("kubeflow.org", "TFJob")][1:]
		}},
		{name: "for a gang whose pods may be about to be made", code: answer.ReservedByOthers, exit: 3, build: func(c *clustertest.Cluster) {
			stuck(func(g *clustertest.Gang) { g.Missing = 2 })(c)
			group := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0]
			group.SetCreationTimestamp(clustertest.Ago(10 * time.Second))
			set(map[string]any{"phase": "Inqueue"}, "status")(group.Object)
			c.S.Custom[kindOf("kubeflow.org", "TFJob")] = c.S.Custom[kindOf("kubeflow.org", "TFJob")][1:]
		}},
		{name: "for a job that has ended", code: answer.ReservedByStuck, exit: 5, wantText: []string{"stuck has ended"}, build: func(c *clustertest.Cluster) {
			stuck(func(g *clustertest.Gang) {
				g.Missing, g.Job = 2, set([]any{clustertest.Condition("Succeeded", "True", "", "", time.Hour)}, "status", "conditions")
			})(c)
			set(map[string]any{"phase": "Inqueue"}, "status")(c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0].Object)
		}},
		{name: "for a gang that has nodes for some members: their GPUs count twice", code: answer.ReservedByOthers, exit: 3, wantText: []string{"requested 16, used 8, reserved 16: together 40, limit 38 .1.2 times the 32 GPUs of the cluster"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Queue("p", "Open", nil)
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "p", Nodes: []string{"n1"}, Pod: nowhere}).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "of its own queue, which admits no more than the cluster has", code: answer.ReservedByStuck, exit: 5, first: "16 GPUs of queue q are idle but reserved for team/stuck", wantText: []string{"together 18, limit 16 .queue q"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "q", Pod: nowhere}).Add(gangOf(1, 2, inQueue("q")))
		}},
		{name: "of another queue, and the scheduler admits more than the cluster has", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Queue("p", "Open", nil)
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "p", Pod: nowhere}).Add(gangOf(1, 2, inQueue("q"), young))
		}},
		{name: "of a queue with a capability", code: answer.ReservedByStuck, exit: 5, first: "16 GPUs of queue q are idle but reserved for team/stuck", fix: "fix or delete team/stuck", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "16"})
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "q", Pod: nowhere}).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "for a gang that is about to start", code: answer.ReservedByOthers, exit: 3, first: "promised to team/stuck", build: stuck(young)},
		{name: "some, and there is enough besides", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "stuck", Workers: 2, GPUs: 8, Volcano: "q", Age: 20 * time.Second}).Add(gangOf(2, 8, inQueue("q"), young))
		}},
	})
}

func TestKAIQueue(t *testing.T) {
	queue := func(c *clustertest.Cluster, name, parent string, gpu map[string]any) {
		spec := map[string]any{"resources": map[string]any{"gpu": gpu}}
		if parent != "" {
			spec["parentQueue"] = parent
		}
		c.Object(map[string]any{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": map[string]any{"name": name}, "spec": spec})
	}
	uses := func(c *clustertest.Cluster, group func(map[string]any)) {
		c.Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Dialect: gang.KAI, Scheduler: "kai-scheduler", Queue: "q", Group: group})
	}
	firm := set("non-preemptible", "spec", "preemptibility")
	check(t, []testCase{
		{name: "above the limit", code: answer.QueueTooSmall, exit: 6, first: "queue q allows 8 GPUs in all", fix: "to 16", build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{"quota": int64(4), "limit": int64(8)})
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler")))
		}},
		{name: "no queue of the name, as KAI reports", code: answer.QueueNotFound, exit: 4, first: `^queue "q" does not exist, and its scheduler does not place the gang; there are: child$`, fix: "use queue child", build: func(c *clustertest.Cluster) {
			queue(c, "parent", "", map[string]any{"quota": int64(-1), "limit": int64(-1)})
			queue(c, "child", "parent", map[string]any{"quota": int64(-1), "limit": int64(-1)})
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler")))
			c.Event("Pod", "team", "gang-worker-0", "kai-scheduler", "Unschedulable", "Queue 'q' does not exist", time.Minute)
		}},
		{name: "above the quota, and may be preempted", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{"quota": int64(8), "limit": int64(-1)})
			c.Nodes(4, 8).Add(gangOf(2, 8, young, speaks(c, gang.KAI, "kai-scheduler")))
		}},
		{name: "above the quota, and may not be preempted", code: answer.QueueTooSmall, exit: 6, first: "8 GPUs in all for gangs that cannot be preempted", fix: "let KAI preempt it, by label kai.scheduler/preemptibility", build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{"quota": int64(8), "limit": int64(-1)})
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler"), func(g *clustertest.Gang) { g.Group = firm }))
		}},
		{name: "only firm gangs use up the quota", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{"quota": int64(16), "limit": int64(-1)})
			c.Nodes(4, 8)
			uses(c, nil)
			c.Add(gangOf(2, 8, young, speaks(c, gang.KAI, "kai-scheduler"), func(g *clustertest.Gang) { g.Group = firm }))
		}},
		{name: "the quota is used up by firm gangs", code: answer.QueueQuota, exit: 3, first: "8 of 16 GPUs left for gangs that cannot be preempted", build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{"quota": int64(16), "limit": int64(-1)})
			c.Nodes(4, 8)
			uses(c, firm)
			c.Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler"), func(g *clustertest.Gang) { g.Group = firm }))
		}},
		{name: "KAI reports that it is over the quota, and by the numbers it is not", code: answer.QueueQuota, exit: 3, first: "queue q does not let it start, reports the scheduler: Workload requested 0.2 GPUs", build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{"quota": float64(0.3), "limit": int64(-1)})
			condition := clustertest.Condition("UnschedulableOnNodePool", "True", "Unschedulable", "", time.Minute)
			condition["reasons"] = []any{map[string]any{"reason": "NonPreemptibleOverQuota", "message": "Workload requested 0.2 GPUs, but q quota is 0.3 GPUs"}}
			c.Nodes(4, 8).Add(gangOf(2, 0, speaks(c, gang.KAI, "kai-scheduler"), func(g *clustertest.Gang) { g.Group = set([]any{condition}, "status", "schedulingConditions") }))
		}},
		{name: "members have completed, which KAI does not count", code: answer.MinMemberTooHigh, exit: 4, first: "wants 4 members, and 2 of its 4 have completed, which KAI does not count: it never places the 2 that are left", fix: "set minMember to 2", build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{})
			c.Nodes(4, 8).Add(gangOf(4, 8, speaks(c, gang.KAI, "kai-scheduler"), pods(func(i int, p *corev1.Pod) {
				if i < 2 {
					p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodSucceeded
				}
			})))
		}},
		{name: "the queue above", code: answer.QueueTooSmall, exit: 6, first: "queue dept", build: func(c *clustertest.Cluster) {
			queue(c, "q", "dept", map[string]any{"quota": int64(-1), "limit": int64(-1)})
			queue(c, "dept", "", map[string]any{"limit": int64(8)})
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler")))
		}},
		{name: "memory in megabytes", code: answer.QueueTooSmall, exit: 6, first: "memory", build: func(c *clustertest.Cluster) {
			queue(c, "q", "", map[string]any{})
			set(map[string]any{"limit": int64(100000)}, "spec", "resources", "memory")(c.S.Custom[kindOf("scheduling.run.ai", "Queue")][0].Object)
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler")))
		}},
		{name: "no such queue", code: answer.QueueNotFound, exit: 4, build: func(c *clustertest.Cluster) {
			queue(c, "other", "", map[string]any{})
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler")))
		}},
	})
}

func TestKubeBatchQueue(t *testing.T) {
	check(t, []testCase{
		{name: "no such queue", code: answer.QueueNotFound, exit: 4, first: `"q" does not exist.*default`, build: func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "Queue", "metadata": map[string]any{"name": "default"}})
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.KubeBatch, "kube-batch")))
		}},
	})
}

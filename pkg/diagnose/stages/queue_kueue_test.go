package stages_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

func gpuQuota(nominal string) clustertest.Quota {
	return clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: nominal}
}

// pool has LocalQueue lq before ClusterQueue cq, which has so many GPUs, and four nodes.
func pool(c *clustertest.Cluster, nominal string) *unstructured.Unstructured {
	c.Nodes(4, 8).LocalQueue("lq", "cq")
	return c.ClusterQueue("cq", "", gpuQuota(nominal))
}

// owner adds the job that owns a Workload, if it is not there.
func owner(c *clustertest.Cluster, job string) {
	if !slices.ContainsFunc(c.S.Custom[kindOf("kubeflow.org", "TFJob")], func(u *unstructured.Unstructured) bool { return u.GetName() == job }) {
		c.Add(clustertest.Gang{Name: job, Workers: 1, GPUs: 1, Missing: 1, NoGroup: true})
	}
}

// uses lets another job use GPUs of a ClusterQueue.
func uses(c *clustertest.Cluster, job, queue, n string) {
	owner(c, job)
	clustertest.Admit(c.Workload(job, "lq", time.Hour), queue, "f", n)
}

func TestKueue(t *testing.T) {
	status := func(u *unstructured.Unstructured, conditions ...any) {
		u.Object["status"] = map[string]any{"conditions": conditions}
	}
	no := func(reason, message string) any {
		return clustertest.Condition("QuotaReserved", "False", reason, message, 3*time.Minute)
	}
	check(t, []testCase{
		{name: "used by others", code: answer.KueueQuota, exit: 3, first: "cq has 8 of 16 GPUs left .flavor f., and the gang needs 16, 8 more", wantText: []string{"team/other uses 8", "Kueue reported 3m ago: insufficient unused quota"}, fix: "to 24", not: []string{"resume"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Add(gangOf(2, 8, kueued))
			status(c.Workload("gang", "lq", time.Minute), no("WaitingForQuota", "insufficient unused quota for nvidia.com/gpu in flavor f, 8 more needed"))
		}},
		{name: "of what another has used some is free again, as its pods have ended", code: answer.KueueQuota, exit: 3, first: "cq has 6 of 8 GPUs left .flavor f., and the gang needs 7, 1 more", wantText: []string{"team/other uses 2"}, fix: "to 9", build: func(c *clustertest.Cluster) {
			pool(c, "8")
			owner(c, "other")
			u := c.Workload("other", "lq", time.Hour)
			clustertest.Admit(u, "cq", "f", "8")
			clustertest.Reclaim(u, 8, 6)
			c.Add(gangOf(7, 1, kueued))
		}},
		{name: "requests that a LimitRange adds count", code: answer.QueueTooSmall, exit: 6, first: "cq allows 8 cpu in all .flavor f., and the gang needs 16", fix: "to 16", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "cpu", Nominal: "8"}, gpuQuota("16"))
			c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
				{Type: corev1.LimitTypeContainer, DefaultRequest: clustertest.List("cpu", "8")}}}})
			c.Add(gangOf(2, 8, spec(onlyGPUs), kueued))
		}},
		{name: "overhead of the pods counts", code: answer.QueueTooSmall, exit: 6, first: "cq allows 16 cpu in all .flavor f., and the gang needs 18", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "cpu", Nominal: "16"}, gpuQuota("16"))
			c.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Overhead: &nodev1.Overhead{PodFixed: clustertest.List("cpu", "1")}})
			c.Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.RuntimeClassName = ptr.To("kata") }), kueued))
		}},
		{name: "what is placed besides is reported too", code: answer.KueueQuota, exit: 3, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Runs("a", 8, "n1", "n2", "n3").Add(gangOf(2, 8, kueued))
		}},
		{name: "who waits before it", code: answer.KueueQuota, exit: 3, wantText: []string{"position 2 of 3"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Add(gangOf(2, 8, kueued))
			for _, name := range []string{"older", "younger"} {
				c.Add(clustertest.Gang{Name: name, Workers: 1, GPUs: 1, Missing: 1, NoGroup: true})
			}
			c.Workload("gang", "lq", 10*time.Minute)
			c.Workload("older", "lq", time.Hour)
			c.Workload("younger", "lq", time.Minute)
		}},
		{name: "never", code: answer.QueueTooSmall, exit: 6, first: "cq allows 8 GPUs in all.*needs 16", fix: "to 16", build: func(c *clustertest.Cluster) {
			pool(c, "8")
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "two roles fit each, but not together", code: answer.QueueTooSmall, exit: 6, first: "needs 16", build: func(c *clustertest.Cluster) {
			pool(c, "8")
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 8}} }, kueued))
		}},
		{name: "the first role alone is too much, and the others come on top", code: answer.QueueTooSmall, exit: 6, first: "needs 24", fix: "to 24", build: func(c *clustertest.Cluster) {
			pool(c, "8")
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 16}} }, kueued))
		}},
		{name: "a cohort above lends", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueTooSmall}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "small", gpuQuota("8"))
			c.ClusterQueue("far", "large", gpuQuota("64"))
			c.Cohort("small", "company")
			c.Cohort("large", "company")
			c.Cohort("company", "")
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "a sister has borrowed", code: answer.KueueQuota, exit: 3, first: "cq has 8 of 32", wantText: []string{"team/other uses 24 in ClusterQueue sister", "of the limit 16 are the queue's own"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "pool", gpuQuota("16"))
			c.ClusterQueue("sister", "pool", gpuQuota("16"))
			uses(c, "other", "sister", "24")
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the flavor that the pods request is used up, another is free", code: answer.KueueQuota, exit: 3, first: "flavor h100", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.Flavor("h100", "class", "h100")
			c.Flavor("a100", "class", "a100")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: "16"}, clustertest.Quota{Flavor: "a100", Resource: "nvidia.com/gpu", Nominal: "16"})
			owner(c, "other")
			clustertest.Admit(c.Workload("other", "lq", time.Hour), "cq", "h100", "16")
			for _, n := range c.S.Nodes {
				n.Labels["class"] = "h100"
			}
			c.Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h100"} }), kueued))
		}},
		{name: "the nodes of the only flavor with quota are busy", code: answer.NodesBusy, exit: 3, wantText: []string{"research/a holds 16 GPUs on n3, n4"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.Flavor("h100", "class", "h100")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: "16"})
			c.S.Nodes[2].Labels["class"], c.S.Nodes[3].Labels["class"] = "h100", "h100"
			c.Runs("a", 8, "n3", "n4").Add(gangOf(2, 8, kueued))
		}},
		{name: "quota is used, and so are the nodes of the flavor", code: answer.KueueQuota, exit: 3, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.Flavor("h100", "class", "h100")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: "16"})
			c.S.Nodes[2].Labels["class"], c.S.Nodes[3].Labels["class"] = "h100", "h100"
			owner(c, "a")
			clustertest.Admit(c.Workload("a", "lq", time.Hour), "cq", "h100", "16")
			c.Runs("a", 8, "n3", "n4").Add(gangOf(2, 8, kueued))
		}},
		{name: "no flavor suits the pods", code: answer.QueueTooSmall, exit: 6, first: "Worker may use none of the flavors of ClusterQueue cq .f.", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Flavor("f", "class", "a100")
			c.S.Nodes[0].Labels["class"], c.S.Nodes[1].Labels["class"] = "h100", "h100"
			c.Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h100"} }), kueued))
		}},
		{name: "the queue has no quota for the device, which Kueue counts", code: answer.QueueTooSmall, exit: 6, first: "no quota for nvidia.com/gpu at all", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "cpu", Nominal: "100"})
			c.Add(gangOf(2, 8, kueued))
			clustertest.PodSet(c.Workload("gang", "lq", time.Minute), "worker", 2, clustertest.List("nvidia.com/gpu", "8"), clustertest.List("nvidia.com/gpu", "16"))
		}},
		{name: "the queue has no quota for the device, and nothing shows whether that counts", code: answer.Fits, exit: 3, wantText: []string{"has no quota for nvidia.com/gpu and memory"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "cpu", Nominal: "100"})
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the queue has no quota for a common resource, as Kueue reports", code: answer.QueueTooSmall, exit: 6, first: "no quota for memory at all, and Worker requests 128Gi", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			status(c.Workload("gang", "lq", time.Minute), no("NoMatchingFlavor", "couldn't assign flavors to pod set worker: resource memory unavailable in ClusterQueue"))
		}},
		{name: "the queue has no quota for a common resource, and nothing shows whether that counts", code: answer.Fits, exit: 3, wantText: []string{"has no quota for cpu and memory"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "quota is reserved, a check is pending: its own use is no one else's", code: answer.KueueCheck, exit: 3, first: "prov is Pending: waiting for nodes", never: []answer.Code{answer.KueueQuota}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			u := c.Workload("gang", "lq", time.Minute)
			clustertest.Admit(u, "cq", "f", "16")
			s := u.Object["status"].(map[string]any)
			s["conditions"] = []any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)}
			s["admissionChecks"] = []any{map[string]any{"name": "prov", "state": "Pending", "message": "waiting for nodes"}}
		}},
		{name: "a check has rejected it", code: answer.KueueCheck, exit: 5, first: "prov is Rejected", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			c.Workload("gang", "lq", time.Minute).Object["status"] = map[string]any{"admissionChecks": []any{map[string]any{"name": "prov", "state": "Rejected", "message": "no capacity"}}}
		}},
		{name: "every check is ready", code: answer.Fits, exit: 3, never: []answer.Code{answer.KueueCheck}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			c.Workload("gang", "lq", time.Minute).Object["status"] = map[string]any{"admissionChecks": []any{map[string]any{"name": "prov", "state": "Ready"}}}
		}},
		{name: "the ClusterQueue is stopped", code: answer.QueueClosed, exit: 5, first: "ClusterQueue cq is closed .stopPolicy HoldAndDrain.", fix: "open ClusterQueue cq", build: func(c *clustertest.Cluster) {
			set("HoldAndDrain", "spec", "stopPolicy")(pool(c, "16").Object)
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the LocalQueue is stopped", code: answer.QueueClosed, exit: 5, first: "LocalQueue lq is closed", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			set("Hold", "spec", "stopPolicy")(c.S.Custom[kindOf("kueue.x-k8s.io", "LocalQueue")][0].Object)
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the ClusterQueue lacks a flavor", code: answer.QueueClosed, exit: 5, first: "not active: Can't admit.*FlavorNotFound|not active: there is no", build: func(c *clustertest.Cluster) {
			status(pool(c, "16"), clustertest.Condition("Active", "False", "FlavorNotFound", "there is no ResourceFlavor f", time.Hour))
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the ClusterQueue is for other namespaces", code: answer.QueueClosed, exit: 5, first: "closed to namespace team: its namespaceSelector takes only those with dept=nlp", fix: "label namespace team dept=nlp", build: func(c *clustertest.Cluster) {
			set(map[string]any{"matchLabels": map[string]any{"dept": "nlp"}}, "spec", "namespaceSelector")(pool(c, "16").Object)
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the ClusterQueue is for this namespace", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			set(map[string]any{"matchLabels": map[string]any{"dept": "nlp"}}, "spec", "namespaceSelector")(pool(c, "16").Object)
			c.S.Namespaces[0].Labels = map[string]string{"dept": "nlp"}
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "no LocalQueue of the name", code: answer.QueueNotFound, exit: 4, first: `LocalQueue "lq" does not exist.*lqueue`, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lqueue", "cq")
			c.ClusterQueue("cq", "", gpuQuota("16"))
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "the LocalQueue leads nowhere", code: answer.QueueNotFound, exit: 5, first: `ClusterQueue "cq" does not exist`, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "switched off", code: answer.KueueInactive, exit: 4, fix: "switch the Workload on", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			set(false, "spec", "active")(c.Workload("gang", "lq", time.Minute).Object)
		}},
		{name: "evicted, and pauses", code: answer.KueueQuota, exit: 3, first: "tries again at 14:02, in 2m.*3 times", wantText: []string{"PodsReadyTimeout"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			u := c.Workload("gang", "lq", time.Hour)
			status(u, clustertest.Condition("Evicted", "True", "PodsReadyTimeout", "exceeded the PodsReady timeout", 4*time.Minute))
			set(map[string]any{"count": int64(3), "requeueAt": "2026-11-21T14:02:00Z"}, "status", "requeueState")(u.Object)
		}},
		{name: "preempted for another job", code: answer.KueueQuota, exit: 3, first: "cq has 0 of 16", wantText: []string{"preempted 4m ago for team/urgent: prioritization in the ClusterQueue"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(clustertest.Gang{Name: "urgent", Workers: 2, GPUs: 8, Missing: 2, NoGroup: true})
			uses(c, "urgent", "cq", "16")
			c.Add(gangOf(2, 8, kueued))
			urgent := c.S.Custom[kindOf("kubeflow.org", "TFJob")][0].GetUID()
			status(c.Workload("gang", "lq", time.Hour), clustertest.Condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload (UID: 1, JobUID: "+string(urgent)+
				") due to prioritization in the ClusterQueue; preemptor path: /cq; preemptee path: /cq", 4*time.Minute))
		}},
		{name: "preempted, and there is quota again", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			why := "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to prioritization in the ClusterQueue; preemptor path: /cq; preemptee path: /cq"
			status(c.Workload("gang", "lq", time.Hour), clustertest.Condition("Evicted", "True", "Preempted", why, 4*time.Minute), clustertest.Condition("QuotaReserved", "False", "Pending", why, 4*time.Minute))
		}},
		{name: "preempted for a job that is gone", code: answer.KueueQuota, exit: 3, not: []string{"Kueue reported"}, wantText: []string{"evicted 4m ago .Preempted.: Preempted to accommodate a workload"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "16")
			c.Add(gangOf(2, 8, kueued))
			why := "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to prioritization in the ClusterQueue; preemptor path: /cq; preemptee path: /cq"
			status(c.Workload("gang", "lq", time.Hour), clustertest.Condition("Evicted", "True", "Preempted", why, 4*time.Minute), clustertest.Condition("QuotaReserved", "False", "Pending", why, 4*time.Minute))
		}},
		{name: "the pause is over", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			set(map[string]any{"count": int64(3), "requeueAt": "2026-11-21T13:59:00Z"}, "status", "requeueState")(c.Workload("gang", "lq", time.Hour).Object)
		}},
		{name: "Kueue knows something else", code: answer.KueueQuota, exit: 3, first: `has not admitted it: topology "rack" allows to fit only 1 out of 2`, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			status(c.Workload("gang", "lq", time.Minute), no("TopologyPlacementFailed", `topology "rack" allows to fit only 1 out of 2 pod(s)`))
		}},
		{name: "Kueue's condition on quota is stale", code: answer.Fits, exit: 3, wantText: []string{"by the current quotas and Workloads there is enough"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			status(c.Workload("gang", "lq", time.Minute), no("WaitingForQuota", "insufficient unused quota for nvidia.com/gpu in flavor f, 8 more needed"))
		}},
		{name: "admitted", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.KueueQuota}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Runs("a", 8, "n1", "n2", "n3").Add(gangOf(2, 8, job(set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels"))))
			clustertest.Admit(c.Workload("gang", "lq", time.Minute), "cq", "f", "16")
		}},
		{name: "strict order: an older one cannot start", code: answer.QueueOrder, exit: 3, first: "it fits.*team/older is ahead .older, needs 32 GPUs. in queue cq", build: func(c *clustertest.Cluster) {
			set("StrictFIFO", "spec", "queueingStrategy")(pool(c, "32").Object)
			uses(c, "other", "cq", "8")
			c.Add(clustertest.Gang{Name: "older", Workers: 4, GPUs: 8, Missing: 4, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
			c.Workload("older", "lq", time.Hour)
			c.Add(gangOf(1, 8, kueued))
			c.Workload("gang", "lq", time.Minute)
		}},
		{name: "strict order: the older one is switched off", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			set("StrictFIFO", "spec", "queueingStrategy")(pool(c, "32").Object)
			uses(c, "other", "cq", "8")
			c.Add(clustertest.Gang{Name: "older", Workers: 4, GPUs: 8, Missing: 4, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
			set(false, "spec", "active")(c.Workload("older", "lq", time.Hour).Object)
			c.Add(gangOf(1, 8, kueued))
			c.Workload("gang", "lq", time.Minute)
		}},
		{name: "no strict order: the older one blocks no other", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			pool(c, "32")
			uses(c, "other", "cq", "8")
			c.Add(clustertest.Gang{Name: "older", Workers: 4, GPUs: 8, Missing: 4, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
			c.Workload("older", "lq", time.Hour)
			c.Add(gangOf(1, 8, kueued))
			c.Workload("gang", "lq", time.Minute)
		}},
	})
}

// What Kueue counts of a job is in its configuration: its Workloads show it.
func TestKueueCounts(t *testing.T) {
	list := clustertest.List
	adapter := spec(func(p *corev1.PodSpec) {
		p.Containers[0].Resources.Requests["rdma/hca"], p.Containers[0].Resources.Limits["rdma/hca"] = resource.MustParse("1"), resource.MustParse("1")
	})
	check(t, []testCase{
		{name: "a device is left out of account", code: answer.KueueQuota, exit: 3, first: "cq has 8 of 24 GPUs left .flavor f., and the gang needs 16", not: []string{"rdma"}, build: func(c *clustertest.Cluster) {
			pool(c, "24")
			for _, n := range c.S.Nodes {
				n.Status.Allocatable["rdma/hca"] = resource.MustParse("8")
			}
			uses(c, "other", "cq", "16")
			c.Add(gangOf(2, 8, adapter, kueued))
			clustertest.PodSet(c.Workload("gang", "lq", time.Minute), "worker", 2, list("nvidia.com/gpu", "8", "rdma/hca", "1"), list("nvidia.com/gpu", "16"))
		}},
		{name: "a job that has started shows that a device is left out of account", code: answer.Fits, exit: 3, not: []string{"rdma"}, build: func(c *clustertest.Cluster) {
			pool(c, "24")
			for _, n := range c.S.Nodes {
				n.Status.Allocatable["rdma/hca"] = resource.MustParse("8")
			}
			u := clustertest.PodSet(c.Workload("other", "lq", time.Hour), "worker", 1, list("nvidia.com/gpu", "8", "rdma/hca", "1"), nil)
			clustertest.Admit(u, "cq", "f", "8")
			c.Add(gangOf(2, 8, adapter, kueued))
		}},
		{name: "a device is counted as another resource", code: answer.KueueQuota, exit: 3, first: "cq has 80 of 160 example.com/credits left .flavor f., and the gang needs 120, 40 more", wantText: []string{"team/other uses 80"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "example.com/credits", Nominal: "160"})
			owner(c, "other")
			u := c.Workload("other", "lq", time.Hour)
			clustertest.Admit(u, "cq", "f", "8")
			set([]any{map[string]any{"name": "worker", "flavors": map[string]any{"example.com/credits": "f"}, "resourceUsage": map[string]any{"example.com/credits": "80"}}},
				"status", "admission", "podSetAssignments")(u.Object)
			c.Add(gangOf(3, 1, kueued))
			clustertest.PodSet(c.Workload("gang", "lq", time.Minute), "worker", 3, list("nvidia.com/gpu", "1"), list("example.com/credits", "120"))
		}},
		{name: "a pod that is no member counts", code: answer.QueueTooSmall, exit: 6, first: "cq allows 16 cpu in all .flavor f., and the gang needs 16.5", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "cpu", Nominal: "16"}, gpuQuota("16"))
			c.Add(gangOf(2, 8, kueued))
			u := clustertest.PodSet(c.Workload("gang", "lq", time.Minute), "worker", 2, list("cpu", "8", "nvidia.com/gpu", "8"), nil)
			clustertest.PodSet(u, "submitter", 1, list("cpu", "500m"), nil)
		}},
	})
}

// What a flavor tolerates, the pods tolerate that Kueue admits to it.
func TestKueueTolerations(t *testing.T) {
	spot := func(c *clustertest.Cluster) {
		c.Nodes(2, 8).LocalQueue("lq", "cq")
		taint := map[string]any{"key": "spot", "value": "true", "effect": "NoSchedule"}
		c.Flavor("f", "", "").Object["spec"] = map[string]any{"nodeLabels": map[string]any{"pool": "spot"}, "nodeTaints": []any{taint},
			"tolerations": []any{map[string]any{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}}}
		c.ClusterQueue("cq", "", gpuQuota("16"))
		for _, n := range c.S.Nodes {
			n.Labels["pool"] = "spot"
			n.Spec.Taints = []corev1.Taint{{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	check(t, []testCase{
		{name: "there is quota", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			spot(c)
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "it is used", code: answer.KueueQuota, exit: 3, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			spot(c)
			uses(c, "other", "cq", "16")
			c.Add(gangOf(2, 8, kueued))
		}},
	})
}

// Kueue writes that a check is Pending as soon as a Workload has a queue, and looks at it when the quota is reserved.
func TestKueueChecks(t *testing.T) {
	checked := func(c *clustertest.Cluster, state, message string, reserved bool) {
		u := c.Workload("gang", "lq", time.Minute)
		if reserved {
			clustertest.Admit(u, "cq", "f", "16")
			set([]any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)}, "status", "conditions")(u.Object)
		}
		set([]any{map[string]any{"name": "dws", "state": state, "message": message}}, "status", "admissionChecks")(u.Object)
	}
	provisions := func(c *clustertest.Cluster) {
		c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "dws"},
			"spec": map[string]any{"controllerName": "kueue.x-k8s.io/provisioning-request"}})
	}
	check(t, []testCase{
		{name: "the quota comes first", code: answer.KueueQuota, exit: 3, first: "cq has 8 of 16", wantText: []string{"then admission check dws has to pass"}, never: []answer.Code{answer.KueueCheck}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Add(gangOf(2, 8, kueued))
			checked(c, "Pending", "", false)
		}},
		{name: "there is quota", code: answer.Fits, exit: 3, wantText: []string{"admission check dws has to pass"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			checked(c, "Pending", "", false)
		}},
		{name: "there is quota, and no node as yet", code: answer.KueueCheck, exit: 3, first: "Kueue has its nodes provisioned once it has reserved quota for it: admission check dws", alone: true,
			wantText: []string{"until its nodes are provisioned: no node offers nvidia.com/gpu"}, build: func(c *clustertest.Cluster) {
				c.Nodes(1, 0).LocalQueue("lq", "cq")
				set([]any{"dws"}, "spec", "admissionChecks")(c.ClusterQueue("cq", "", gpuQuota("16")).Object)
				provisions(c)
				c.Add(gangOf(2, 8, kueued))
				c.Workload("gang", "lq", time.Second)
			}},
		{name: "there is no quota, and no node as yet", code: answer.KueueQuota, exit: 3, wantText: []string{"then admission check dws has to pass: max size reached"}, never: []answer.Code{answer.ResourceNotOffered, answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).LocalQueue("lq", "cq")
			set([]any{"dws"}, "spec", "admissionChecks")(c.ClusterQueue("cq", "", gpuQuota("16")).Object)
			provisions(c)
			uses(c, "other", "cq", "16")
			c.Add(gangOf(2, 8, kueued))
			checked(c, "Pending", "max size reached", false)
		}},
		{name: "a check that is to be tried again, and is not", code: answer.KueueCheck, exit: 5, first: "dws is Retry: no capacity; Kueue took the quota back for that and was to try again 40m ago, and has not", wantText: []string{"delete workload.kueue.x-k8s.io tfjob-gang"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			checked(c, "Retry", "no capacity", false)
			u := c.S.Custom[kindOf("kueue.x-k8s.io", "Workload")][0]
			set([]any{clustertest.Condition("QuotaReserved", "False", "Pending", "", 41*time.Minute), clustertest.Condition("Evicted", "True", "AdmissionCheck", "", time.Hour),
				clustertest.Condition("Requeued", "True", "BackoffFinished", "", 40*time.Minute)}, "status", "conditions")(u.Object)
		}},
		{name: "a check that is tried again counts without quota", code: answer.KueueCheck, exit: 3, first: "dws is Retry: no capacity", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Add(gangOf(2, 8, kueued))
			checked(c, "Retry", "no capacity", false)
		}},
		{name: "nodes are being provisioned", code: answer.KueueCheck, exit: 3, first: "dws is Pending: the request is queued", wantText: []string{"until its nodes are provisioned: no node offers nvidia.com/gpu"},
			never: []answer.Code{answer.ResourceNotOffered}, build: func(c *clustertest.Cluster) {
				c.Nodes(1, 0).LocalQueue("lq", "cq")
				c.ClusterQueue("cq", "", gpuQuota("16"))
				provisions(c)
				c.Add(gangOf(2, 8, kueued))
				checked(c, "Pending", "the request is queued", true)
			}},
		{name: "the node pool is as large as it may be", code: answer.KueueCheck, exit: 5, first: "dws is Pending: Retrying after failure", alone: true, wantText: []string{
			"ProvisioningRequest gang-dws-2: Failed is True, reported 8m ago", "an administrator can raise the maximum size of node pool h100-dws", "Kueue has requested them again 2 of at most 3 times", "describe provisioningrequests.autoscaling.x-k8s.io gang-dws-2$|gang-dws-2\n"},
			build: func(c *clustertest.Cluster) {
				c.Nodes(1, 0).LocalQueue("lq", "cq")
				c.ClusterQueue("cq", "", gpuQuota("16"))
				provisions(c)
				set("limits", "spec", "parameters", "name")(c.S.Custom[kindOf("kueue.x-k8s.io", "AdmissionCheck")][0].Object)
				c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ProvisioningRequestConfig", "metadata": map[string]any{"name": "limits"}, "spec": map[string]any{"retryStrategy": map[string]any{"backoffLimitCount": int64(3)}}})
				c.Add(gangOf(2, 8, kueued))
				checked(c, "Pending", "Retrying after failure", true)
				u := c.S.Custom[kindOf("kueue.x-k8s.io", "Workload")][0]
				u.SetUID("workload")
				set([]any{map[string]any{"name": "dws", "state": "Pending", "message": "Retrying after failure", "retryCount": int64(2)}}, "status", "admissionChecks")(u.Object)
				for i, message := range []string{"", "Provisioning Request's pods cannot be scheduled in the nodepool, affected nodepools: h100-dws: Max nodepool size reached"} {
					request := c.Object(map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": map[string]any{"namespace": "team", "name": fmt.Sprintf("gang-dws-%d", i+1)},
						"status": map[string]any{"conditions": []any{clustertest.Condition("Failed", "True", "NotSchedulableInNodepool", message, 8*time.Minute)}}})
					request.SetCreationTimestamp(clustertest.Ago(time.Hour - time.Duration(i)*time.Minute))
					request.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kueue.x-k8s.io/v1beta2", Kind: "Workload", Name: u.GetName(), UID: u.GetUID(), Controller: ptr.To(true)}})
				}
			}},
		{name: "no nodes come of another check", code: answer.ResourceNotOffered, exit: 4, also: []answer.Code{answer.KueueCheck}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", gpuQuota("16"))
			c.Add(gangOf(2, 8, kueued))
			checked(c, "Pending", "a person has to approve it", true)
		}},
	})
}

// MultiKueue has a job run in another cluster: nothing is placed in this one.
func TestMultiKueue(t *testing.T) {
	dispatched := func(c *clustertest.Cluster, active int64) {
		c.Nodes(1, 0).LocalQueue("lq", "cq")
		c.ClusterQueue("cq", "", gpuQuota("16"))
		c.Add(gangOf(2, 8, none, ungrouped, job(func(j map[string]any) {
			set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
			set(kueue.MultiKueue, "spec", "runPolicy", "managedBy")(j)
			set(map[string]any{"Worker": map[string]any{"active": active}}, "status", "replicaStatuses")(j)
		})))
	}
	admitted := func(c *clustertest.Cluster) {
		u := c.Workload("gang", "lq", time.Minute)
		clustertest.Admit(u, "cq", "f", "16")
		set("w1", "status", "clusterName")(u.Object)
		set([]any{map[string]any{"name": "mk", "state": "Ready", "message": `The workload got reservation on "w1"`}}, "status", "admissionChecks")(u.Object)
	}
	check(t, []testCase{
		{name: "it waits there", code: answer.KueueCheck, exit: 3, first: "dispatched it to cluster w1, where 0 of 2 members run", wantText: []string{"gangctl why-pending gang -n team --context w1", "got reservation on"}, alone: true, build: func(c *clustertest.Cluster) {
			dispatched(c, 0)
			admitted(c)
		}},
		{name: "it runs there", exit: 0, build: func(c *clustertest.Cluster) {
			dispatched(c, 2)
			admitted(c)
		}},
		{name: "one of the clusters has no connection", code: answer.KueueCheck, exit: 3, first: "mk is Pending: Preparing; MultiKueue has no connection to west$", alone: true,
			wantText: []string{"it is offered to east, west", "MultiKueueCluster west is not active: i/o timeout, for 50m", "get multikueueclusters"}, not: []string{"north"}, build: func(c *clustertest.Cluster) {
				dispatched(c, 0)
				u := c.Workload("gang", "lq", time.Minute)
				set([]any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)}, "status", "conditions")(u.Object)
				set([]any{map[string]any{"name": "mk", "state": "Pending", "message": "Preparing"}}, "status", "admissionChecks")(u.Object)
				set([]any{"east", "west"}, "status", "nominatedClusterNames")(u.Object)
				c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "mk"}, "spec": map[string]any{"controllerName": kueue.MultiKueue}})
				for name, active := range map[string]string{"east": "True", "west": "False", "north": "False"} {
					c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster", "metadata": map[string]any{"name": name},
						"status": map[string]any{"conditions": []any{clustertest.Condition("Active", active, "ClientConnectionFailed", "i/o timeout", 50*time.Minute)}}})
				}
			}},
		{name: "it is not dispatched", code: answer.KueueCheck, exit: 3, first: "has not dispatched it", alone: true, build: func(c *clustertest.Cluster) {
			dispatched(c, 0)
			c.Workload("gang", "lq", time.Minute)
		}},
		{name: "there is no quota", code: answer.KueueQuota, exit: 3, alone: true, build: func(c *clustertest.Cluster) {
			dispatched(c, 0)
			uses(c, "other", "cq", "8")
			c.Workload("gang", "lq", time.Minute)
		}},
	})
}

// Kueue may admit nothing until the pods of what it has admitted are ready.
func TestKueueBlocksAdmission(t *testing.T) {
	check(t, []testCase{{name: "named", code: answer.KueueQuota, exit: 3, first: "admits nothing until the pods of team/bert are ready", wantText: []string{"why the pods of team/bert are not ready: .*cannot be pulled|why the pods of team/bert are not ready: .*image"},
		build: func(c *clustertest.Cluster) {
			pool(c, "32")
			c.Add(clustertest.Gang{Name: "bert", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, NoGroup: true, Pod: func(_ int, p *corev1.Pod) {
				p.Status.Phase = corev1.PodPending
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}}}
			}})
			uses(c, "bert", "cq", "8")
			c.Add(gangOf(2, 8, kueued))
			c.Workload("gang", "lq", time.Minute).Object["status"] = map[string]any{"conditions": []any{
				clustertest.Condition("QuotaReserved", "False", "WaitingForPodsReady", "waiting for all admitted workloads to be in PodsReady condition", time.Minute)}}
		}}})
}

// The members of a job that Kueue holds share a domain if their annotation requires it, whether a scheduler declares a gang or not.
func TestKueueTopology(t *testing.T) {
	racks := func(c *clustertest.Cluster, message string) {
		pool(c, "64")
		for i, n := range c.S.Nodes {
			n.Labels["cloud/rack"] = fmt.Sprint("r", i/2)
		}
		c.Workload("gang", "lq", time.Minute).Object["status"] = map[string]any{"conditions": []any{
			clustertest.Condition("QuotaReserved", "False", "TopologyPlacementFailed", message, time.Minute)}}
	}
	rack := func(g *clustertest.Gang) {
		suspend := g.Job
		g.Job = func(j map[string]any) {
			suspend(j)
			set("cloud/rack", "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "annotations", kueue.RequiredTopology)(j)
		}
	}
	check(t, []testCase{
		{name: "never", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			c.Add(gangOf(3, 8, kueued, rack))
			racks(c, `couldn't assign flavors to pod set worker: topology "dc" allows to fit only 2 out of 3 pod(s)`)
		}},
		{name: "a Job, whose members start one by one", code: answer.TooBig, exit: 6, first: "all 3 members must share one value of cloud/rack, and the largest has room for 2", build: func(c *clustertest.Cluster) {
			pool(c, "64")
			for i, n := range c.S.Nodes {
				n.Labels["cloud/rack"] = fmt.Sprint("r", i/2)
			}
			c.Add(gangOf(3, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind = "Job"
				g.BatchJob = func(j *batchv1.Job) {
					j.Spec.Suspend, j.Labels = ptr.To(true), map[string]string{"kueue.x-k8s.io/queue-name": "lq"}
					j.Spec.Template.Annotations = map[string]string{kueue.RequiredTopology: "cloud/rack"}
				}
			}))
		}},
		{name: "one of several roles, never", code: answer.TooBig, exit: 6, first: "podset=worker", not: []string{"podset-required-topology"}, build: func(c *clustertest.Cluster) {
			c.Add(gangOf(3, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1}} }, kueued, rack))
			racks(c, `couldn't assign flavors to pod set worker: topology "dc" allows to fit only 2 out of 3 pod(s)`)
		}},
		{name: "one of several roles, the others are elsewhere", code: answer.Fits, exit: 3, not: []string{"podset-required-topology"}, build: func(c *clustertest.Cluster) {
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1, GPUs: 8}} }, kueued, rack))
			racks(c, `couldn't assign flavors to pod set worker: topology "dc" allows to fit only 1 out of 2 pod(s)`)
		}},
		{name: "not now", code: answer.TopologyFragmented, exit: 3, not: []string{"podset-required-topology"}, build: func(c *clustertest.Cluster) {
			c.Add(gangOf(2, 8, kueued, rack))
			racks(c, `couldn't assign flavors to pod set worker: topology "dc" allows to fit only 1 out of 2 pod(s)`)
			c.Runs("a", 8, "n1").Runs("b", 8, "n3")
		}},
	})
}

// Each replica of a job of several gangs has a Workload of its own.
func TestKueueWorkloadOfReplica(t *testing.T) {
	c := clustertest.New()
	for i, admitted := range []bool{true, false} {
		u := c.Workload("serve", "lq", time.Minute)
		u.SetName(fmt.Sprint("serve-", i))
		u.SetAnnotations(map[string]string{kueue.IndexAnnotation: fmt.Sprint(i)})
		if admitted {
			clustertest.Admit(u, "cq", "f", "8")
		}
	}
	v := view.New(c.S)
	for i, want := range []string{"serve-0", "serve-1"} {
		replica := int32(i)
		g := &gang.Gang{Job: &gang.Job{Replica: &replica}}
		g.Meta.Namespace, g.Meta.UID = "team", c.S.Custom[kindOf(kueue.Group, "Workload")][0].GetOwnerReferences()[0].UID
		if u := v.Workload(g.Job); u == nil || u.GetName() != want {
			t.Errorf("replica %d: got %v", i, u)
		}
	}
}

// Releases of Kueue that write no index have the pods of a replica name its Workload.
func TestKueueWorkloadNamedByPods(t *testing.T) {
	c := clustertest.New()
	c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
		g.Kind = leaderworkerset.Kind
		g.Pod = func(_ int, p *corev1.Pod) { p.Labels["kueue.x-k8s.io/pod-group-name"] = "gang-0" }
	}))
	v := view.New(c.Done())
	g := v.Gangs(v.Jobs()[0])[0]
	if g.Replica == nil {
		t.Fatal("the job has one gang alone")
	}
	u := c.Workload("gang", "lq", time.Minute)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: leaderworkerset.Kind, Name: "gang", UID: g.Meta.UID}})
	for name, want := range map[string]bool{"gang-0": true, "gang-1": false} {
		u.SetName(name)
		if got := view.New(c.S).Workload(g.Job) != nil; got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Pods that Kueue holds by a gate are not missing.
func TestKueuePods(t *testing.T) {
	gated := func(g *clustertest.Gang) {
		g.Dialect, g.Queue = gang.Kueue, "lq"
		g.Pod = func(_ int, p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}, {Name: "kueue.x-k8s.io/topology"}}
		}
	}
	check(t, []testCase{
		{name: "quota is used", code: answer.KueueQuota, exit: 3, first: "cq has 8 of 16", never: []answer.Code{answer.SchedulingGated, answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Add(gangOf(2, 8, gated))
		}},
		{name: "the queue is stopped", code: answer.QueueClosed, exit: 5, build: func(c *clustertest.Cluster) {
			set("Hold", "spec", "stopPolicy")(pool(c, "16").Object)
			c.Add(gangOf(2, 8, gated))
		}},
	})
}

// A ClusterQueue may select namespaces by their names, which readers of another one do not see.
func TestNamespacesOfAClusterQueueAreNotNamed(t *testing.T) {
	build := func(c *clustertest.Cluster) {
		set(map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "secret"}}, "spec", "namespaceSelector")(pool(c, "16").Object)
		c.Add(gangOf(2, 8, kueued))
	}
	for names, want := range map[audience.Policy]bool{audience.Hidden: false, audience.Named: true} {
		got := diagnose(t, build, stages.Options{Reader: names.Reader("team")})
		if got.Primary == nil || got.Primary.Code != answer.QueueClosed {
			t.Fatalf("found %+v", got.Primary)
		}
		if text := fmt.Sprint(got.Primary.Message, got.Primary.Facts); strings.Contains(text, "secret") != want {
			t.Errorf("foreignNames %v: %s", names, text)
		}
	}
}

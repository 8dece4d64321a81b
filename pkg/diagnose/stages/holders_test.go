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

// ofPod makes a Workload that of a pod by itself.
func ofPod(u *unstructured.Unstructured, p *corev1.Pod) {
	u.SetNamespace(p.Namespace)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}})
}

// evicted adds to a Workload that Kueue has evicted it.
func evicted(u *unstructured.Unstructured, reason string, ago time.Duration) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	set(append(conditions, clustertest.Condition("Evicted", "True", reason, "evicted", ago)), "status", "conditions")(u.Object)
}

// Whoever has quota and gives none back by itself is named, and who has to act.
func TestLastingUsersOfQuota(t *testing.T) {
	serves := func(c *clustertest.Cluster, nominal string) {
		pool(c, nominal)
		c.Serves("llm", 8, "n1")
		u := c.Workload("llm", "lq", time.Hour)
		ofPod(u, c.S.Pods[len(c.S.Pods)-1])
		clustertest.Admit(u, "cq", "f", "8")
		waitsInKueue(c, 2, 8)
	}
	ghost := func(c *clustertest.Cluster, build func(*corev1.PodSpec)) {
		c.Add(clustertest.Gang{Name: "ghost", Workers: 2, GPUs: 8, NoGroup: true, Spec: build, Age: 5 * time.Hour})
		clustertest.Admit(c.Workload("ghost", "lq", 5*time.Hour), "cq", "f", "16")
		waitsInKueue(c, 2, 8)
	}
	put := func(c *clustertest.Cluster, ago time.Duration) {
		pool(c, "16")
		c.Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Missing: 1, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
		u := c.Workload("other", "lq", 4*time.Hour)
		clustertest.Admit(u, "cq", "f", "8")
		evicted(u, "PodsReadyTimeout", ago)
		waitsInKueue(c, 2, 8)
	}
	gpus := func(n string) map[string]any { return map[string]any{"nvidia.com/gpu": n} }
	served := func(c *clustertest.Cluster, capability string) {
		c.Queue("q", "Open", gpus(capability))
		c.Nodes(4, 8).Serves("llm", 8, "n1")
		p := c.S.Pods[len(c.S.Pods)-1]
		p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "podgroup-rs"}
		c.Object(map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "serving", "name": "podgroup-rs", "uid": "rs"},
			"spec": map[string]any{"minMember": int64(1), "queue": "q", "minResources": gpus("8")}, "status": map[string]any{"phase": "Running"}})
	}
	check(t, []testCase{
		{name: "a service that Kueue manages", code: answer.KueueQuota, exit: 5, first: "8 more; of what is used, Deployment serving/llm gives nothing back$", wantText: []string{"Deployment serving/llm uses 8, and does not end", "no end of a job frees enough of it: an administrator has to raise it, or to have Deployment serving/llm give way"},
			build: func(c *clustertest.Cluster) { serves(c, "16") }},
		{name: "a service that Kueue may preempt", code: answer.KueueQuota, exit: 3, wantText: []string{"does not end", "Kueue may preempt for it"}, not: []string{"no end of a job"}, build: func(c *clustertest.Cluster) {
			serves(c, "16")
			set("LowerPriority", "spec", "preemption", "withinClusterQueue")(c.S.Custom[kindOf("kueue.x-k8s.io", "ClusterQueue")][0].Object)
			set(int64(100), "spec", "priority")(c.S.Custom[kindOf("kueue.x-k8s.io", "Workload")][1].Object)
		}},
		{name: "a service, and a job whose end is enough", code: answer.KueueQuota, exit: 3, wantText: []string{"does not end"}, not: []string{"no end of a job"}, build: func(c *clustertest.Cluster) {
			uses(c, "other", "cq", "8")
			serves(c, "24")
		}},
		{name: "one that was admitted and can never start", code: answer.ReservedByStuck, exit: 5, first: "cq has 0 of 16 GPUs left.*team/ghost can never start and gives nothing back", fix: "fix or delete team/ghost",
			wantText: []string{"team/ghost uses 16, and can never start: no node has the label class=b200"}, build: func(c *clustertest.Cluster) {
				pool(c, "16")
				ghost(c, selects("class", "b200"))
			}},
		{name: "one that was admitted and waits for room", code: answer.KueueQuota, exit: 3, not: []string{"never start"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Runs("a", 8, "n1", "n2", "n3")
			ghost(c, nil)
		}},
		{name: "one that can never start, besides enough that ends", code: answer.KueueQuota, exit: 3, wantText: []string{"can never start"}, build: func(c *clustertest.Cluster) {
			pool(c, "32")
			uses(c, "other", "cq", "8")
			ghost(c, selects("class", "b200"))
		}},
		{name: "one that Kueue evicted long ago, and that has no pods", code: answer.KueueQuota, exit: 5, wantText: []string{"Kueue evicted it 3h ago .PodsReadyTimeout. and it has no pods"}, fix: "Workload team/tfjob-other", build: func(c *clustertest.Cluster) { put(c, 3*time.Hour) }},
		{name: "one that Kueue has just evicted", code: answer.KueueQuota, exit: 3, wantText: []string{"given back once its pods are gone"}, build: func(c *clustertest.Cluster) { put(c, time.Minute) }},
		{name: "a service under Volcano", code: answer.QueueQuota, exit: 5, first: "of what is used, Deployment serving/llm gives nothing back", wantText: []string{"Deployment serving/llm uses 8, never ends", "to have Deployment serving/llm give way"}, build: func(c *clustertest.Cluster) {
			served(c, "16")
			c.Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "a service under Volcano, and a job whose end is enough", code: answer.QueueQuota, exit: 3, wantText: []string{"team/other uses 8"}, not: []string{"no end of a job"}, build: func(c *clustertest.Cluster) {
			served(c, "24")
			c.Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n2"}, Volcano: "q"}).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "one that can never start is first in a strict queue", code: answer.QueueOrder, exit: 3, wantText: []string{"older can never start as it is"}, fix: "fix or delete team/older", build: func(c *clustertest.Cluster) {
			set("StrictFIFO", "spec", "queueingStrategy")(pool(c, "32").Object)
			c.Add(clustertest.Gang{Name: "older", Workers: 8, GPUs: 8, Missing: 8, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
			c.Workload("older", "lq", time.Hour)
			c.Add(gangOf(1, 8, kueued))
			c.Workload("gang", "lq", time.Minute)
		}},
		{name: "the object of an owner that is not read is made again", code: answer.ReservedByStuck, exit: 5, first: "reserved for team/ghost, which can never start", wantText: []string{"why ghost-1 does not start: .*class=b200"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "ghost-1", Workers: 4, GPUs: 8, Volcano: "q", Pod: nowhere}).Add(gangOf(2, 8, inQueue("q")))
			ref := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Flow", Name: "ghost", UID: "flow", Controller: new(true)}
			for _, p := range c.S.Pods {
				p.OwnerReferences, p.Labels = []metav1.OwnerReference{ref}, nil
			}
			for _, u := range c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")] {
				if u.GetName() == "ghost-1" {
					u.SetOwnerReferences([]metav1.OwnerReference{ref})
				}
			}
			jobs := c.S.Custom[kindOf("kubeflow.org", "TFJob")]
			c.S.Custom[kindOf("kubeflow.org", "TFJob")] = jobs[1:]
		}, fix: "fix or delete team/ghost"},
	})
}

// A job that hangs in its deletion keeps its quota: waiting for it is useless.
func TestDeletedUsersOfQuota(t *testing.T) {
	going := func(c *clustertest.Cluster, ago time.Duration) {
		pool(c, "16")
		c.Add(clustertest.Gang{Name: "old", Workers: 1, GPUs: 8, Missing: 1, NoGroup: true, Age: 25 * time.Hour, Job: deletedFor(ago, "ray.io/gcs-ft-redis-cleanup-finalizer")})
		clustertest.Admit(c.Workload("old", "lq", 25*time.Hour), "cq", "f", "8")
		waitsInKueue(c, 2, 8)
	}
	check(t, []testCase{
		{name: "it hangs", code: answer.KueueQuota, exit: 5, first: "jobs that hang in their deletion will give nothing back", fix: "take the finalizers off team/old", wantText: []string{"team/old uses 8, and is being deleted, for 6h: it waits for finalizer ray.io/gcs-ft-redis-cleanup-finalizer"},
			build: func(c *clustertest.Cluster) { going(c, 6*time.Hour) }},
		{name: "it has just been told to go", code: answer.KueueQuota, exit: 3, wantText: []string{"given back once its pods are gone: it is being deleted"}, build: func(c *clustertest.Cluster) { going(c, time.Minute) }},
	})
}

package stages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// Whom Kueue preempts for a job is named: who goes already, who may, and by which policy.
func TestKueuePreempts(t *testing.T) {
	preempts := func(u *unstructured.Unstructured, field, policy string) {
		set(policy, "spec", "preemption", field)(u.Object)
	}
	// waits has the gang wait with a priority.
	waits := func(c *clustertest.Cluster, priority int64) *unstructured.Unstructured {
		u := waitsInKueue(c, 1, 8)
		set(priority, "spec", "priority")(u.Object)
		u.SetUID("w1")
		return u
	}
	evicted := func(c *clustertest.Cluster, why string) {
		u := c.Workload("other", "lq", time.Hour)
		clustertest.Admit(u, "cq", "f", "16")
		set(append(u.Object["status"].(map[string]any)["conditions"].([]any), clustertest.Condition("Evicted", "True", "Preempted", why, 20*time.Second)), "status", "conditions")(u.Object)
	}
	check(t, []testCase{
		{name: "it has, and the pods are still to go", code: answer.KueueQuota, exit: 3, first: "Kueue has preempted team/other for it, and waits until its pods are gone: ClusterQueue cq has 0 of 16",
			wantText: []string{"team/other uses 16, which is given back once its pods are gone: Kueue evicts it .Preempted."}, build: func(c *clustertest.Cluster) {
				preempts(pool(c, "16"), "withinClusterQueue", "LowerPriority")
				owner(c, "other")
				evicted(c, "Preempted to accommodate a workload (UID: w1, JobUID: UNKNOWN) due to prioritization in the ClusterQueue; preemptor path: /cq; preemptee path: /cq")
				waits(c, 10)
			}},
		{name: "it has, for another job", code: answer.KueueQuota, exit: 3, first: "Kueue holds it", wantText: []string{"given back once its pods are gone"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			owner(c, "other")
			evicted(c, "Preempted to accommodate a workload (UID: w10, JobUID: UNKNOWN) due to prioritization in the ClusterQueue; preemptor path: /cq; preemptee path: /cq")
			waits(c, 10)
		}},
		{name: "it may", code: answer.KueueQuota, exit: 3, first: "cq has 0 of 16", wantText: []string{"without fair sharing Kueue may preempt for it: team/other .16 GPUs, priority 0 < 10; withinClusterQueue LowerPriority."}, build: func(c *clustertest.Cluster) {
			preempts(pool(c, "16"), "withinClusterQueue", "LowerPriority")
			uses(c, "other", "cq", "16")
			waits(c, 10)
		}},
		{name: "it may not, of an equal", code: answer.KueueQuota, exit: 3, not: []string{"preempt"}, build: func(c *clustertest.Cluster) {
			preempts(pool(c, "16"), "withinClusterQueue", "LowerPriority")
			uses(c, "other", "cq", "16")
			waits(c, 0)
		}},
		{name: "it may, of a newer equal", code: answer.KueueQuota, exit: 3, wantText: []string{"may preempt for it: team/other .16 GPUs, newer; withinClusterQueue LowerOrNewerEqualPriority."}, build: func(c *clustertest.Cluster) {
			preempts(pool(c, "16"), "withinClusterQueue", "LowerOrNewerEqualPriority")
			uses(c, "other", "cq", "16")
			waits(c, 0).SetCreationTimestamp(metav1.NewTime(clustertest.Now.Add(-2 * time.Hour)))
		}},
		{name: "it may take back what the queue has lent", code: answer.KueueQuota, exit: 3, wantText: []string{"may preempt for it: team/other .24 GPUs, borrowed by ClusterQueue sister; reclaimWithinCohort Any."}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			preempts(c.ClusterQueue("cq", "pool", gpuQuota("8")), "reclaimWithinCohort", "Any")
			c.ClusterQueue("sister", "pool", gpuQuota("16"))
			uses(c, "other", "sister", "24")
			waits(c, 0)
		}},
		{name: "the policy is in the way", code: answer.KueueQuota, exit: 3, wantText: []string{"withinClusterQueue of ClusterQueue cq is Never"}, fix: "set withinClusterQueue of ClusterQueue cq to LowerPriority, by which Kueue preempts team/other (16 GPUs, priority 0 < 10)",
			build: func(c *clustertest.Cluster) {
				pool(c, "16")
				uses(c, "other", "cq", "16")
				waits(c, 10)
			}},
		{name: "the policy is in the way, and the queue is one of fair sharing", code: answer.KueueQuota, exit: 3, not: []string{"withinClusterQueue"}, wantText: []string{"whom Kueue preempts for it: by fair sharing"}, build: func(c *clustertest.Cluster) {
			q := pool(c, "16")
			set("0", "status", "fairSharing", "weightedShare")(q.Object)
			uses(c, "other", "cq", "16")
			waits(c, 10)
		}},
		{name: "more might be preempted than is tried", code: answer.KueueQuota, exit: 3, not: []string{"preempts nothing", "preempt for it"}, build: func(c *clustertest.Cluster) {
			c.Nodes(40, 8).LocalQueue("lq", "cq")
			preempts(c.ClusterQueue("cq", "", gpuQuota("150")), "withinClusterQueue", "LowerPriority")
			for i := range 150 {
				clustertest.Admit(c.Workload(fmt.Sprint("x", i), "lq", time.Minute), "cq", "f", "1")
			}
			set(int64(10), "spec", "priority")(waitsInKueue(c, 15, 8).Object)
		}},
		{name: "no policy helps", code: answer.KueueQuota, exit: 3, not: []string{"Never", "preempt"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "16")
			waits(c, 0)
		}},
	})
}

// Quota that is kept for jobs that are gone is released by nobody, unless their Workloads are removed.
func TestKueueLeftBehind(t *testing.T) {
	keeps := func(c *clustertest.Cluster, n string) *unstructured.Unstructured {
		u := c.Workload("ghost", "lq", time.Hour)
		clustertest.Admit(u, "cq", "f", n)
		return u
	}
	check(t, []testCase{
		{name: "the job is gone", code: answer.KueueQuota, exit: 5, first: "cq has 8 of 16 .*; of what is used, what is left of jobs that are gone will give nothing back", wantText: []string{"team/ghost uses 8, though it is gone: its Workload team/tfjob-ghost is still there"},
			fix: "Workload team/tfjob-ghost", build: func(c *clustertest.Cluster) {
				pool(c, "16")
				keeps(c, "8")
				waitsInKueue(c, 2, 8)
			}},
		{name: "its owner reference, too", code: answer.KueueQuota, exit: 5, wantText: []string{"team/tfjob-ghost uses 8, though it is gone"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := keeps(c, "8")
			u.SetOwnerReferences(nil)
			u.SetLabels(map[string]string{"kueue.x-k8s.io/job-uid": "u"})
			waitsInKueue(c, 2, 8)
		}},
		{name: "another job has its name now", code: answer.KueueQuota, exit: 5, wantText: []string{"though it is gone"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := keeps(c, "8")
			refs := u.GetOwnerReferences()
			refs[0].UID = "earlier"
			u.SetOwnerReferences(refs)
			owner(c, "ghost")
			waitsInKueue(c, 2, 8)
		}},
		{name: "the pods of one that was evicted are stuck", code: answer.KueueQuota, exit: 5, first: "jobs whose pods are stuck in Terminating will give nothing back", fix: "clear a-worker-0", wantText: []string{"should have gone 20m ago"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.Runs("a", 8, "n1")
			p := c.S.Pods[len(c.S.Pods)-1]
			gone := metav1.NewTime(clustertest.Now.Add(-20 * time.Minute))
			p.DeletionTimestamp = &gone
			u := c.Workload("a", "lq", time.Hour)
			u.SetNamespace("research")
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.GetControllerOf(p)})
			clustertest.Admit(u, "cq", "f", "8")
			set(append(u.Object["status"].(map[string]any)["conditions"].([]any), clustertest.Condition("Evicted", "True", "Preempted", "", 20*time.Minute)), "status", "conditions")(u.Object)
			waitsInKueue(c, 2, 8)
		}},
		{name: "others use enough, and end", code: answer.KueueQuota, exit: 3, wantText: []string{"though it is gone"}, fix: "Workload team/tfjob-ghost", build: func(c *clustertest.Cluster) {
			pool(c, "24")
			keeps(c, "8")
			uses(c, "other", "cq", "8")
			waitsInKueue(c, 2, 8)
		}},
		{name: "the Workload is new: its job may have been made after jobs were listed", code: answer.KueueQuota, exit: 3, not: []string{"is gone", "remove"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			keeps(c, "8").SetCreationTimestamp(metav1.NewTime(clustertest.Now.Add(-time.Minute)))
			waitsInKueue(c, 2, 8)
		}},
		{name: "the Workload goes, too", code: answer.KueueQuota, exit: 3, not: []string{"is gone", "remove"}, wantText: []string{"team/ghost uses 8, which is given back soon"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			just := metav1.NewTime(clustertest.Now.Add(-time.Second))
			keeps(c, "8").SetDeletionTimestamp(&just)
			waitsInKueue(c, 2, 8)
		}},
		{name: "the Workload should have gone long ago", code: answer.KueueQuota, exit: 5, wantText: []string{"though it is gone"}, fix: "Workload team/tfjob-ghost", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			long := metav1.NewTime(clustertest.Now.Add(-time.Hour))
			keeps(c, "8").SetDeletionTimestamp(&long)
			waitsInKueue(c, 2, 8)
		}},
		{name: "a file without the jobs of its namespace", code: answer.KueueQuota, exit: 3, not: []string{"is gone", "remove"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.S.Server.Resources = nil
			keeps(c, "8").SetNamespace("research")
			waitsInKueue(c, 2, 8)
		}},
		{name: "a file with jobs of its namespace", code: answer.KueueQuota, exit: 5, wantText: []string{"though it is gone"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.S.Server.Resources = nil
			keeps(c, "8")
			waitsInKueue(c, 2, 8)
		}},
		{name: "a kind that is not served", code: answer.KueueQuota, exit: 3, not: []string{"is gone", "remove"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			c.S.Server.Resources = []string{"pytorchjobs.kubeflow.org/v1"}
			keeps(c, "8")
			waitsInKueue(c, 2, 8)
		}},
		{name: "of a kind that is not known here", code: answer.KueueQuota, exit: 3, not: []string{"is gone"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := keeps(c, "8")
			refs := u.GetOwnerReferences()
			refs[0].Kind, refs[0].APIVersion = "AppWrapper", "workload.codeflare.dev/v1beta2"
			u.SetOwnerReferences(refs)
			waitsInKueue(c, 2, 8)
		}},
		{name: "a copy of MultiKueue's", code: answer.KueueQuota, exit: 3, not: []string{"is gone"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := keeps(c, "8")
			u.SetOwnerReferences(nil)
			u.SetLabels(map[string]string{"kueue.x-k8s.io/job-uid": "u", "kueue.x-k8s.io/multikueue-origin": "multikueue"})
			waitsInKueue(c, 2, 8)
		}},
	})
}

// A Workload of another namespace is named to nobody who does not see that.
func TestKueueLeftBehindIsNotNamed(t *testing.T) {
	build := func(c *clustertest.Cluster) {
		pool(c, "16")
		u := c.Workload("secret", "lq", time.Hour)
		clustertest.Admit(u, "cq", "f", "8")
		u.SetNamespace("research")
		waitsInKueue(c, 2, 8)
	}
	for names, want := range map[audience.Policy]bool{audience.Hidden: false, audience.Named: true} {
		got := diagnose(t, build, stages.Options{Reader: names.Reader("team")})
		if got.Primary == nil || got.Primary.Code != answer.KueueQuota || answer.ExitCode(got.Verdict, got.Who, got.Never) != 5 {
			t.Fatalf("found %+v", got.Primary)
		}
		if text := fmt.Sprint(got.Primary.Message, got.Primary.Details, got.Primary.Facts); strings.Contains(text, "secret") != want {
			t.Errorf("foreignNames %v: %s", names, text)
		}
	}
}

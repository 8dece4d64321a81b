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

// What Kueue is about to take back is all that a job waits for, where it is enough and no other waits for that.
func TestKueueTakesBack(t *testing.T) {
	// going has job other evicted, and its pods end in so long; zero is not yet.
	going := func(c *clustertest.Cluster, why string, ends time.Duration) {
		c.Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, NoGroup: true, Nodes: []string{"n1", "n2"}, Age: time.Hour, Pod: func(_ int, p *corev1.Pod) {
			if at := metav1.NewTime(clustertest.Now.Add(ends)); ends != 0 {
				p.DeletionTimestamp = &at
			}
		}})
		u := c.Workload("other", "lq", time.Hour)
		u.SetUID("w-other")
		clustertest.Admit(u, "cq", "f", "16")
		set(append(u.Object["status"].(map[string]any)["conditions"].([]any), clustertest.Condition("Evicted", "True", "Preempted", why, 20*time.Second)), "status", "conditions")(u.Object)
	}
	waits := func(c *clustertest.Cluster, workers int) *unstructured.Unstructured {
		u := waitsInKueue(c, workers, 8)
		u.SetUID("w1")
		return u
	}
	// rival waits, too, since before.
	rival := func(c *clustertest.Cluster) {
		c.Add(clustertest.Gang{Name: "rival", Workers: 1, GPUs: 8, Missing: 1, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
		c.Workload("rival", "lq", 2*time.Hour).SetUID("w-rival")
	}
	const forIt, forGone, forRival = "Preempted to accommodate a workload (UID: w1, JobUID: UNKNOWN) due to prioritization in the ClusterQueue", "Preempted to accommodate a higher priority Workload",
		"Preempted to accommodate a workload (UID: w-rival, JobUID: UNKNOWN) due to prioritization in the ClusterQueue"
	check(t, []testCase{
		{name: "preempted for it, and the pods end", code: answer.VictimsTerminating, exit: 3, first: "^Kueue has preempted team/other for it, and waits until its pods are gone, at most 20s: ClusterQueue cq has 0 of 16", not: []string{"raise nominalQuota"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			going(c, forIt, 20*time.Second)
			waits(c, 2)
		}},
		{name: "preempted, by a release that does not report for whom", code: answer.VictimsTerminating, exit: 3, first: "^Kueue waits until team/other is gone, with its pods, at most 20s: ClusterQueue cq has 0 of 16", not: []string{"raise nominalQuota"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			going(c, forGone, 20*time.Second)
			waits(c, 2)
		}},
		{name: "it is not enough", code: answer.KueueQuota, exit: 3, first: "^Kueue holds it", build: func(c *clustertest.Cluster) {
			pool(c, "24")
			going(c, forGone, 20*time.Second)
			uses(c, "stays", "cq", "8")
			waits(c, 3)
		}},
		{name: "another comes first", code: answer.KueueQuota, exit: 3, first: "^Kueue holds it", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			going(c, forGone, 20*time.Second)
			rival(c)
			waits(c, 2)
		}},
		{name: "it was for another, which waits", code: answer.KueueQuota, exit: 3, first: "^Kueue holds it", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			going(c, forRival, 20*time.Second)
			rival(c)
			set(int64(10), "spec", "priority")(waits(c, 2).Object)
		}},
		{name: "the pods have not been deleted yet", code: answer.KueueQuota, exit: 3, first: "^Kueue holds it", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			going(c, forGone, 0)
			waits(c, 2)
		}},
	})
}

// Where the cohort has the room, a queue is to borrow more: its own quota would be more than there is.
func TestKueueBorrowsMore(t *testing.T) {
	limited := func(nominal, borrow string) clustertest.Quota {
		q := gpuQuota(nominal)
		q.Borrow = borrow
		return q
	}
	cohort := func(c *clustertest.Cluster, sister string) {
		c.Nodes(8, 8).LocalQueue("lq", "cq")
		c.ClusterQueue("cq", "pool", limited("16", "8"))
		c.ClusterQueue("sister", "pool", gpuQuota(sister))
	}
	check(t, []testCase{
		{name: "never as it is", code: answer.QueueTooSmall, exit: 6, wantText: []string{"cohort pool has 64 GPUs in all, 64 that nobody uses; ClusterQueue cq borrows 8 at most .borrowingLimit."}, not: []string{"raise nominalQuota"},
			fix: "raise borrowingLimit of nvidia.com/gpu in flavor f of ClusterQueue cq to 16", build: func(c *clustertest.Cluster) {
				cohort(c, "48")
				waitsInKueue(c, 4, 8)
			}},
		{name: "for now", code: answer.KueueQuota, exit: 3, fix: "raise borrowingLimit of nvidia.com/gpu in flavor f of ClusterQueue cq to 16", not: []string{"raise nominalQuota"}, build: func(c *clustertest.Cluster) {
			cohort(c, "48")
			uses(c, "other", "cq", "16")
			waitsInKueue(c, 2, 8)
		}},
		{name: "others use what the cohort has", code: answer.QueueTooSmall, exit: 6, wantText: []string{"8 that nobody uses"}, fix: "raise nominalQuota", not: []string{"raise borrowingLimit"}, build: func(c *clustertest.Cluster) {
			cohort(c, "48")
			uses(c, "other", "sister", "56")
			waitsInKueue(c, 4, 8)
		}},
	})
}

package stages_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// In a strictly ordered ClusterQueue only what Kueue tries to admit, and cannot, keeps those behind it waiting.
func TestKueueStrictOrder(t *testing.T) {
	// strict has the gang of 8 GPUs wait for a minute in a queue of 32, of which 8 are used, behind a job of some workers with 8 GPUs each, which has waited for an hour.
	strict := func(c *clustertest.Cluster, workers int) (older, mine *unstructured.Unstructured) {
		set("StrictFIFO", "spec", "queueingStrategy")(pool(c, "32").Object)
		uses(c, "other", "cq", "8")
		c.Add(clustertest.Gang{Name: "older", Workers: workers, GPUs: 8, Missing: workers, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
		older = c.Workload("older", "lq", time.Hour)
		c.Add(gangOf(1, 8, kueued))
		return older, c.Workload("gang", "lq", time.Minute)
	}
	unknown := func(u *unstructured.Unstructured) {
		refs := u.GetOwnerReferences()
		refs[0].APIVersion, refs[0].Kind, refs[0].UID = "workload.codeflare.dev/v1beta2", "AppWrapper", "w"
		u.SetOwnerReferences(refs)
	}
	check(t, []testCase{
		{name: "the one ahead has no quota", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) { strict(c, 4) }},
		{name: "it pauses", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 4)
			set(map[string]any{"count": int64(2), "requeueAt": "2026-11-21T14:05:00Z"}, "status", "requeueState")(older.Object)
		}},
		{name: "its pause is over", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 4)
			set(map[string]any{"count": int64(2), "requeueAt": "2026-11-21T13:55:00Z"}, "status", "requeueState")(older.Object)
		}},
		{name: "it was put back after the gang was made", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 4)
			conditions(older, clustertest.Condition("Evicted", "True", "PodsReadyTimeout", "exceeded the PodsReady timeout", 30*time.Second))
		}},
		{name: "it was preempted, and keeps its place", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 4)
			conditions(older, clustertest.Condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload", 30*time.Second))
		}},
		{name: "another controller keeps it back", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 4)
			older.SetAnnotations(map[string]string{"kueue.x-k8s.io/admission-gated-by": "example.com/budget"})
		}},
		{name: "it has quota, and lacks nodes: it leaves the queue", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			strict(c, 2)
			c.Runs("a", 8, "n1", "n2", "n3")
		}},
		{name: "both have quota, and neither has nodes", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			strict(c, 2)
			c.Runs("a", 8, "n1", "n2", "n3", "n4")
		}},
		{name: "both have quota, and neither has nodes, one of a kind that is not known here", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 2)
			unknown(older)
			clustertest.PodSet(older, "worker", 2, clustertest.List("nvidia.com/gpu", "8"), clustertest.List("nvidia.com/gpu", "16"))
			c.Runs("a", 8, "n1", "n2", "n3", "n4")
		}},
		{name: "it has quota, and leaves none", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) {
			strict(c, 3)
			c.Runs("a", 8, "n1", "n2", "n3")
		}},
		{name: "the gang has quota already", code: answer.KueueCheck, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			_, mine := strict(c, 4)
			clustertest.Admit(mine, "cq", "f", "8")
			conditions(mine, clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute))
			set([]any{map[string]any{"name": "dws", "state": "Pending", "message": "waits"}}, "status", "admissionChecks")(mine.Object)
		}},
		{name: "one of a kind that is not known here has no quota", code: answer.QueueOrder, exit: 3, first: "AppWrapper team/older is ahead .older. in queue cq", build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 4)
			unknown(older)
			clustertest.PodSet(older, "worker", 4, clustertest.List("nvidia.com/gpu", "8"), clustertest.List("nvidia.com/gpu", "32"))
		}},
		{name: "one of a kind that is not known here has quota, and leaves enough", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			older, _ := strict(c, 2)
			unknown(older)
			clustertest.PodSet(older, "worker", 2, clustertest.List("nvidia.com/gpu", "8"), clustertest.List("nvidia.com/gpu", "16"))
		}},
		{name: "made in the same second, the uid decides", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) {
			older, mine := strict(c, 4)
			mine.SetCreationTimestamp(older.GetCreationTimestamp())
			older.SetUID("a")
			mine.SetUID("b")
		}},
		{name: "made in the same second, the uid decides for the gang", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			older, mine := strict(c, 4)
			mine.SetCreationTimestamp(older.GetCreationTimestamp())
			older.SetUID("b")
			mine.SetUID("a")
		}},
	})
}

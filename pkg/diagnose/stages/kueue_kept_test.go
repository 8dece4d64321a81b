package stages_test

import (
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Kueue keeps what the first job of a strictly ordered queue needs of that queue's own quota, though nobody uses it: other queues of the cohort cannot borrow it meanwhile.
func TestKueueKeepsQuotaForTheFirst(t *testing.T) {
	of := func(change func(spec map[string]any), needs int) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "besteffort")
			c.LocalQueue("first", "guaranteed")
			c.ClusterQueue("besteffort", "root", gpuQuota("0"))
			change(c.ClusterQueue("guaranteed", "root", gpuQuota("16")).Object["spec"].(map[string]any))
			uses(c, "g1", "guaranteed", "8")
			c.Add(clustertest.Gang{Name: "g2", Workers: needs, GPUs: 8, Missing: needs, NoGroup: true, Job: set(true, "spec", "runPolicy", "suspend")})
			c.Workload("g2", "first", time.Hour)
			conditions(waitsInKueue(c, 1, 8), clustertest.Condition("QuotaReserved", "False", "Pending", "Workload no longer fits after processing another workload", time.Minute))
		}
	}
	strict := func(spec map[string]any) { spec["queueingStrategy"] = "StrictFIFO" }
	check(t, []testCase{
		{name: "strict", code: answer.KueueQuota, exit: 3, first: "^Kueue keeps the 8 GPUs .flavor f. that nobody uses for team/g2, which needs 16 and is the first in ClusterQueue guaranteed of the same cohort: its queueingStrategy is StrictFIFO$",
			wantText: []string{"why team/g2 waits: Kueue holds it", "Kueue reported 60s ago: Workload no longer fits"}, fix: "queueingStrategy BestEffortFIFO", build: of(strict, 2)},
		{name: "it may take its quota back", code: answer.KueueQuota, exit: 3, first: "has not admitted it: Workload no longer fits", build: of(func(spec map[string]any) {
			strict(spec)
			spec["preemption"] = map[string]any{"reclaimWithinCohort": "Any"}
		}, 2)},
		{name: "not strict", code: answer.KueueQuota, exit: 3, first: "has not admitted it: Workload no longer fits", build: of(func(map[string]any) {}, 2)},
		{name: "the first would have to borrow", code: answer.KueueQuota, exit: 3, first: "has not admitted it: Workload no longer fits", build: of(strict, 3)},
	})
}

// What Kueue cannot count is no matter of who uses the quota.
func TestKueueMisconfigured(t *testing.T) {
	of := func(reason, message string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			pool(c, "16")
			conditions(waitsInKueue(c, 2, 8), clustertest.Condition("QuotaReserved", "False", reason, message, time.Minute))
		}
	}
	check(t, []testCase{
		{name: "a class of devices is not mapped", code: answer.KueueQuota, exit: 5, first: "has not admitted it: DeviceClass mig.nvidia.com is not mapped", wantText: []string{"maps DeviceClass mig.nvidia.com to a resource .*resources.deviceClassMappings"},
			build: of("Inadmissible", "DeviceClass mig.nvidia.com is not mapped in DRA configuration for workload podset main")},
		{name: "as newer releases have it", code: answer.KueueQuota, exit: 5, build: of("Misconfigured", "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled")},
		{name: "any other reason passes", code: answer.KueueQuota, exit: 3, build: of("Pending", "something that is not known here")},
	})
}

// Kueue gives up a Workload whose pods were not ready in time however often it tried.
func TestKueueGivesUp(t *testing.T) {
	of := func(reason string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			set(false, "spec", "active")(u.Object)
			conditions(u, clustertest.Condition("Evicted", "True", reason, "The workload is deactivated due to exceeding the maximum number of re-queuing retries", 30*time.Minute))
			set(map[string]any{"count": int64(3)}, "status", "requeueState")(u.Object)
		}
	}
	want := testCase{code: answer.KueueInactive, exit: 4, first: "exceeding the maximum number of re-queuing retries: after 3 tries its pods were not ready in time, the last time 30m ago$",
		wantText: []string{"what kept them from it comes first", "gangctl events gang -n team"}, fix: "switch the Workload on"}
	var cases []testCase
	for _, reason := range []string{"DeactivatedDueToRequeuingLimitExceeded", "Deactivated", "InactiveWorkload"} {
		one := want
		one.name, one.build = reason, of(reason)
		cases = append(cases, one)
	}
	check(t, cases)
}

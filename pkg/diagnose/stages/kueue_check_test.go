package stages_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// waitsInKueue adds the gang, which Kueue holds, and its Workload.
func waitsInKueue(c *clustertest.Cluster, workers int, gpus int64, changes ...func(*clustertest.Gang)) *unstructured.Unstructured {
	c.Add(gangOf(workers, gpus, append([]func(*clustertest.Gang){kueued}, changes...)...))
	return c.Workload("gang", "lq", 10*time.Minute)
}

// conditions gives an object conditions, and no others.
func conditions(u *unstructured.Unstructured, all ...any) { set(all, "status", "conditions")(u.Object) }

// A check that has rejected a Workload is why Kueue has switched that off.
func TestKueueRejected(t *testing.T) {
	checked := func(u *unstructured.Unstructured, state, message string) {
		set([]any{map[string]any{"name": "dws", "state": state, "message": message}}, "status", "admissionChecks")(u.Object)
	}
	off := func(u *unstructured.Unstructured) { set(false, "spec", "active")(u.Object) }
	budget := func(c *clustertest.Cluster) {
		c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "dws"}, "spec": map[string]any{"controllerName": "example.com/budget"}})
	}
	check(t, []testCase{
		{name: "and it was switched off", code: answer.KueueCheck, exit: 5, first: "dws is Rejected: over budget", alone: true, wantText: []string{"example.com/budget reports", "patch workload.kueue.x-k8s.io tfjob-gang", "describe admissioncheck"},
			build: func(c *clustertest.Cluster) {
				pool(c, "16")
				budget(c)
				u := waitsInKueue(c, 2, 8)
				off(u)
				checked(u, "Rejected", "over budget")
			}},
		{name: "the check is to be made again, and the eviction has why", code: answer.KueueCheck, exit: 5, first: "dws is Rejected: over budget", alone: true, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			off(u)
			checked(u, "Pending", "Reset to Pending after eviction. Previously: Rejected")
			conditions(u, clustertest.Condition("Evicted", "True", "DeactivatedDueToAdmissionCheck", `The workload is deactivated due to AdmissionCheck in Rejected state: "dws" (over budget)`, time.Minute))
		}},
		{name: "no list of checks is left", code: answer.KueueCheck, exit: 5, first: "an admission check has rejected it: .*dws", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			off(u)
			conditions(u, clustertest.Condition("Evicted", "True", "DeactivatedDueToAdmissionCheck", `The workload is deactivated due to AdmissionCheck in Rejected state: "dws"`, time.Minute))
		}},
		{name: "it is about to be switched off", code: answer.KueueCheck, exit: 5, first: "dws is Rejected: over budget", alone: true, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			checked(u, "Rejected", "over budget")
			conditions(u, clustertest.Condition("DeactivationTarget", "True", "AdmissionCheck", `AdmissionCheck in Rejected state: "dws" (over budget)`, time.Second))
		}},
		{name: "switched on again, it is checked again", code: answer.Fits, exit: 3, never: []answer.Code{answer.KueueCheck}, wantText: []string{"dws has to pass .it was Rejected before."}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			checked(waitsInKueue(c, 2, 8), "Pending", "Reset to Pending after eviction. Previously: Rejected")
		}},
		{name: "its pods were not ready too often", code: answer.KueueInactive, exit: 4, first: "Kueue has switched Workload tfjob-gang off .*exceeding the maximum number of re-queuing retries", fix: "submit it again under another name", wantText: []string{"were not ready in time again and again", "fix: switch the Workload on"},
			build: func(c *clustertest.Cluster) {
				pool(c, "16")
				u := waitsInKueue(c, 2, 8)
				off(u)
				checked(u, "Pending", "")
				conditions(u, clustertest.Condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "The workload is deactivated due to exceeding the maximum number of re-queuing retries", time.Minute))
			}},
		{name: "a user has", code: answer.KueueInactive, exit: 4, first: "tfjob-gang is switched off", not: []string{"Kueue has switched"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			off(u)
			conditions(u, clustertest.Condition("Evicted", "True", "Deactivated", "The workload is deactivated", time.Minute))
		}},
		{name: "a user has, of one that a check had rejected before", code: answer.KueueInactive, exit: 4, first: "tfjob-gang is switched off", never: []answer.Code{answer.KueueCheck}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			off(u)
			checked(u, "Pending", "Reset to Pending after eviction. Previously: Rejected")
			conditions(u, clustertest.Condition("Evicted", "True", "Deactivated", "The workload is deactivated", time.Minute))
		}},
		{name: "put back to be checked again later", code: answer.KueueCheck, exit: 3, first: "dws is Retry: no capacity", alone: true, wantText: []string{"tries again at 14:02, in 2m"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			checked(u, "Pending", "Reset to Pending after eviction. Previously: Retry")
			conditions(u, clustertest.Condition("Evicted", "True", "AdmissionCheck", `Evicted due to AdmissionCheck in Retry state: "dws" (no capacity)`, time.Minute))
			set(map[string]any{"count": int64(1), "requeueAt": "2026-11-21T14:02:00Z"}, "status", "requeueState")(u.Object)
		}},
		{name: "its quota is reserved, and its place is still to be found", code: answer.KueueQuota, exit: 3, first: "quota is reserved, and Kueue has not admitted it yet: There are pending delayed", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			clustertest.Admit(u, "cq", "f", "16")
			conditions(u, clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute), clustertest.Condition("Admitted", "False", "PendingDelayedTopologyRequests", "There are pending delayed topology requests", time.Minute))
		}},
		{name: "Kueue is evicting it", code: answer.KueueQuota, exit: 3, first: "taking back what it had admitted", wantText: []string{"evicted 1m|evicted 60s"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			u := waitsInKueue(c, 2, 8)
			clustertest.Admit(u, "cq", "f", "16")
			conditions(u, clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Hour), clustertest.Condition("Admitted", "True", "Admitted", "", time.Hour),
				clustertest.Condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload", time.Minute))
		}},
		{name: "another controller keeps it back", code: answer.KueueQuota, exit: 3, first: "before example.com/budget allows that", build: func(c *clustertest.Cluster) {
			pool(c, "16")
			waitsInKueue(c, 2, 8).SetAnnotations(map[string]string{"kueue.x-k8s.io/admission-gated-by": "example.com/budget"})
		}},
	})
}

// What Kueue reports of a queue that is closed is no reason of its own; what it reported of one that is open again is history.
func TestKueueClosedAlone(t *testing.T) {
	reported := func(c *clustertest.Cluster, message string) {
		set([]any{clustertest.Condition("QuotaReserved", "False", "Inadmissible", message, time.Minute)}, "status", "conditions")(waitsInKueue(c, 2, 8).Object)
	}
	check(t, []testCase{
		{name: "stopped", code: answer.QueueClosed, exit: 5, alone: true, build: func(c *clustertest.Cluster) {
			set("Hold", "spec", "stopPolicy")(pool(c, "16").Object)
			reported(c, "ClusterQueue cq is inactive")
		}},
		{name: "drained", code: answer.QueueClosed, exit: 5, alone: true, build: func(c *clustertest.Cluster) {
			set("HoldAndDrain", "spec", "stopPolicy")(pool(c, "16").Object)
			u := waitsInKueue(c, 2, 8)
			set([]any{clustertest.Condition("Evicted", "True", "ClusterQueueStopped", "The ClusterQueue is stopped", time.Minute),
				clustertest.Condition("QuotaReserved", "False", "Pending", "The ClusterQueue is stopped", time.Minute)}, "status", "conditions")(u.Object)
		}},
		{name: "not active", code: answer.QueueClosed, exit: 5, alone: true, build: func(c *clustertest.Cluster) {
			set([]any{clustertest.Condition("Active", "False", "FlavorNotFound", "Can't admit new workloads: references missing ResourceFlavor(s): f.", time.Hour)}, "status", "conditions")(pool(c, "16").Object)
			reported(c, "ClusterQueue cq is inactive")
		}},
		{name: "the LocalQueue", code: answer.QueueClosed, exit: 5, alone: true, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			set("Hold", "spec", "stopPolicy")(c.S.Custom[kindOf("kueue.x-k8s.io", "LocalQueue")][0].Object)
			reported(c, "LocalQueue lq is stopped")
		}},
		{name: "and the quota is used, too", code: answer.QueueClosed, exit: 5, also: []answer.Code{answer.KueueQuota}, build: func(c *clustertest.Cluster) {
			set("Hold", "spec", "stopPolicy")(pool(c, "16").Object)
			uses(c, "other", "cq", "8")
			reported(c, "ClusterQueue cq is inactive")
		}},
		{name: "open again", code: answer.Fits, exit: 3, alone: true, wantText: []string{"nothing keeps it out"}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			reported(c, "ClusterQueue cq is inactive")
		}},
		{name: "without a selector it takes no namespace", code: answer.QueueClosed, exit: 5, alone: true, first: "closed to every namespace", fix: "all namespaces", build: func(c *clustertest.Cluster) {
			unstructured.RemoveNestedField(pool(c, "16").Object, "spec", "namespaceSelector")
			reported(c, "Workload namespace doesn't match ClusterQueue selector")
		}},
	})
}

package stages_test

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// volcanoJob adds a Job of Volcano without pods in a phase, with its PodGroup if that has one.
func volcanoJob(c *clustertest.Cluster, phase, groupPhase string) {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": map[string]any{
		"requests": map[string]any{"cpu": "8", "nvidia.com/gpu": "8"}, "limits": map[string]any{"nvidia.com/gpu": "8"}}}}}}
	c.Object(map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": map[string]any{"namespace": "team", "name": "gang", "uid": "vcjob", "creationTimestamp": "2026-11-21T13:50:00Z"},
		"spec":   map[string]any{"minAvailable": int64(2), "queue": "q", "tasks": []any{map[string]any{"name": "worker", "replicas": int64(2), "template": template}}},
		"status": map[string]any{"state": map[string]any{"phase": phase, "message": "waits for its queue"}}})
	if groupPhase != "" {
		ownedGroup(c, "batch.volcano.sh/v1alpha1", "Job", "vcjob", groupPhase)
	}
}

// ownedGroup adds a PodGroup of Volcano that an object makes which is called gang.
func ownedGroup(c *clustertest.Cluster, version, kind, uid, phase string) {
	c.Object(map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "gang-" + uid, "uid": "group",
		"ownerReferences": []any{map[string]any{"apiVersion": version, "kind": kind, "name": "gang", "uid": uid, "controller": true}}},
		"spec":   map[string]any{"minMember": int64(2), "queue": "q", "minResources": map[string]any{"cpu": "16", "nvidia.com/gpu": "16"}},
		"status": map[string]any{"phase": phase}})
}

// A job of a kind that is not read, and has no pods yet, is known by its PodGroup; one of Volcano by what it has itself, too.
func TestGangsWithoutPods(t *testing.T) {
	of := func(state string, capability map[string]any, build func(*clustertest.Cluster)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Schedules("volcano").Queue("q", state, capability)
			c.Nodes(2, 8)
			build(c)
		}
	}
	waits := func(c *clustertest.Cluster) { volcanoJob(c, "Pending", "Pending") }
	check(t, []testCase{
		{name: "the queue is closed", code: answer.QueueClosed, exit: 5, first: "queue q is Closed", wantText: []string{"Volcano's controller reports of the job: Pending: waits for its queue"}, build: of("Closed", nil, waits)},
		{name: "the queue is too small", code: answer.QueueTooSmall, exit: 6, first: "8 GPUs in all, and the gang needs 16", build: of("Open", map[string]any{"nvidia.com/gpu": "8"}, waits)},
		{name: "nodes are busy", code: answer.NodesBusy, exit: 3, first: "2 workers with 8 GPUs each|8 GPUs", build: of("Open", nil, func(c *clustertest.Cluster) {
			c.Runs("a", 8, "n1", "n2")
			volcanoJob(c, "Pending", "Pending")
		})},
		{name: "its controller has made no PodGroup", code: answer.PodGroupMissing, exit: 5, first: "has made none for gang", build: of("Open", nil, func(c *clustertest.Cluster) { volcanoJob(c, "Pending", "") })},
		{name: "it is aborted", code: answer.JobSuspended, exit: 4, first: "gang is aborted", fix: "resume it", build: of("Open", nil, func(c *clustertest.Cluster) { volcanoJob(c, "Aborted", "") })},
		{name: "it has failed", code: answer.JobFailed, exit: 9, first: "waits for its queue", build: of("Open", nil, func(c *clustertest.Cluster) { volcanoJob(c, "Failed", "") })},
		{name: "of nobody", code: answer.QueueTooSmall, exit: 6, first: "8 GPUs in all, and the gang needs 16", build: of("Open", map[string]any{"nvidia.com/gpu": "8"}, func(c *clustertest.Cluster) {
			ownedGroup(c, "example.com/v1", "Train", "other", "Pending")
			u := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0]
			u.SetOwnerReferences(nil)
			u.SetName("gang")
		})},
		{name: "of another kind", code: answer.QueueClosed, exit: 5, wantText: []string{"what each of its pods requests"}, build: of("Closed", nil, func(c *clustertest.Cluster) { ownedGroup(c, "example.com/v1", "Train", "other", "Pending") })},
	})
}

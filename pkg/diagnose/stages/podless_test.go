package stages_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// volcanoJob adds a Job of Volcano without pods in a phase, with its PodGroup if that has one.
func volcanoJob(c *clustertest.Cluster, phase, groupPhase string) {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": map[string]any{
		"requests": map[string]any{"cpu": "8", "nvidia.com/gpu": "8"}, "limits": map[string]any{"nvidia.com/gpu": "8"}}}}}}
	c.Object(map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": map[string]any{"namespace": "team", "name": "gang", "uid": "vcjob", "creationTimestamp": "2026-11-21T13:50:00Z"},
		"spec":   map[string]any{"minAvailable": int64(2), "queue": "q", "tasks": []any{map[string]any{"name": "worker", "replicas": int64(2), "template": template}}},
		"status": map[string]any{"state": map[string]any{"phase": phase, "message": "waits for its queue"}}})
	c.Deployment("volcano-system", "volcano-controllers", "volcanosh/vc-controller-manager:v1.12.0")
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
		{name: "its controller does not run", code: answer.OperatorMissing, exit: 5, first: "no controller turns Volcano Jobs into pods: no vc-controller-manager runs", build: of("Open", nil, func(c *clustertest.Cluster) {
			volcanoJob(c, "", "")
			c.S.Deployments = slices.DeleteFunc(c.S.Deployments, func(d *appsv1.Deployment) bool { return d.Name == "volcano-controllers" })
		})},
		{name: "its job may not be read", code: answer.QueueClosed, exit: 5, wantText: []string{"what each of its pods requests"}, build: of("Closed", nil, func(c *clustertest.Cluster) {
			ownedGroup(c, "batch.volcano.sh/v1alpha1", "Job", "vcjob", "Pending")
			c.S.Denied = append(c.S.Denied, snapshot.Denial{Resource: "jobs.batch.volcano.sh"})
		})},
		{name: "of nobody", code: answer.QueueTooSmall, exit: 6, first: "8 GPUs in all, and the gang needs 16", build: of("Open", map[string]any{"nvidia.com/gpu": "8"}, func(c *clustertest.Cluster) {
			ownedGroup(c, "example.com/v1", "Train", "other", "Pending")
			u := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0]
			u.SetOwnerReferences(nil)
			u.SetName("gang")
		})},
		{name: "of one member, whose minResources are those of all pods of an application", code: answer.Fits, exit: 3, first: "not evaluated: what each of its pods requests", never: []answer.Code{answer.TooBig}, build: of("Open", nil, func(c *clustertest.Cluster) {
			ownedGroup(c, "example.com/v1", "Train", "other", "Pending")
			u := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0]
			set(int64(1), "spec", "minMember")(u.Object)
			u.SetCreationTimestamp(clustertest.Ago(time.Minute))
		})},
		{name: "of one member, of a queue that is too small for its minResources", code: answer.QueueTooSmall, exit: 6, first: "8 GPUs in all, and the gang needs 16", not: []string{"minResources of PodGroup"}, build: of("Open", map[string]any{"nvidia.com/gpu": "8"}, func(c *clustertest.Cluster) {
			ownedGroup(c, "example.com/v1", "Train", "other", "Pending")
			set(int64(1), "spec", "minMember")(c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0].Object)
		})},
		{name: "of another kind", code: answer.QueueClosed, exit: 5, wantText: []string{"what each of its pods requests"}, build: of("Closed", nil, func(c *clustertest.Cluster) { ownedGroup(c, "example.com/v1", "Train", "other", "Pending") })},
	})
}

// A Job of Volcano that has pods is a job as others are: its members are those of its tasks, and why they wait is found as for those.
func TestVolcanoJob(t *testing.T) {
	of := func(min int, nodes ...string) clustertest.Gang {
		return gangOf(2, 8, func(g *clustertest.Gang) {
			g.Kind, g.Volcano, g.Scheduler, g.Min, g.Nodes = clustertest.VolcanoJob, "q", "volcano", min, nodes
		})
	}
	build := func(g clustertest.Gang, more ...func(*clustertest.Cluster)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Schedules("volcano").Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(g)
			for _, add := range more {
				add(c)
			}
		}
	}
	check(t, []testCase{
		{name: "it runs", exit: 0, build: build(of(2, "n1", "n2"))},
		{name: "it names a claim that does not exist, before which its controller makes nothing", code: answer.PVCUnbound, exit: 4, first: "data", never: []answer.Code{answer.PodGroupMissing, answer.BelowQuorum}, wantText: []string{"makes nothing of the Job before there is claim data"},
			build: func(c *clustertest.Cluster) {
				c.Schedules("volcano").Queue("q", "Open", nil)
				c.Nodes(2, 8)
				volcanoJob(c, "Pending", "")
				set([]any{map[string]any{"mountPath": "/data", "volumeClaimName": "data"}}, "spec", "volumes")(c.S.Custom[kindOf("batch.volcano.sh", "Job")][0].Object)
			}},
		{name: "a minimum of it runs", exit: 0, wantText: []string{"1 of 2 members are not up; the gang needs 1"}, build: build(of(1, "n1"))},
		{name: "nodes are busy", code: answer.NodesBusy, exit: 3, first: "8 GPUs", build: build(of(2), func(c *clustertest.Cluster) { c.Runs("a", 8, "n1", "n2") })},
		{name: "a member was lost", code: answer.MemberLost, exit: 7, build: build(of(2, "n1"), func(c *clustertest.Cluster) { c.Runs("a", 8, "n2") })},
	})
}

// The kinds of the Training Operator that have nothing special but their layout.
func TestFurtherKinds(t *testing.T) {
	for _, kind := range []string{"XGBoostJob", "PaddleJob", "JAXJob"} {
		of := func(change ...func(*clustertest.Gang)) func(*clustertest.Cluster) {
			return func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, append(change, func(g *clustertest.Gang) { g.Kind = kind })...))
			}
		}
		check(t, []testCase{
			{name: kind + " runs", exit: 0, build: of(func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} })},
			{name: kind + " is a node short", code: answer.TooBig, exit: 6, first: "it needs 2 workers with 8 GPUs each", build: func(c *clustertest.Cluster) {
				c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Kind = kind }))
			}},
			{name: kind + " is suspended", code: answer.JobSuspended, exit: 4, fix: "resume it", build: of(func(g *clustertest.Gang) { g.Missing = 2 }, job(func(j map[string]any) {
				j["spec"].(map[string]any)["runPolicy"] = map[string]any{"suspend": true}
			}))},
			{name: kind + " needs no more than its minimum", exit: 0, wantText: []string{"the gang needs 1"}, build: of(ungrouped, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }, job(func(j map[string]any) {
				j["spec"].(map[string]any)["runPolicy"] = map[string]any{"suspend": false, "schedulingPolicy": map[string]any{"minAvailable": int64(1)}}
			}))},
			{name: kind + " has another container", code: answer.JobInvalid, exit: 4, first: "there is no container named", fix: "rename container", build: of(func(g *clustertest.Gang) {
				g.Missing, g.Spec = 2, func(spec *corev1.PodSpec) { spec.Containers[0].Name = "main" }
			})},
			{name: kind + " has no operator", code: answer.OperatorMissing, exit: 5, first: "no controller turns " + kind + "s into pods: no training-operator runs", build: func(c *clustertest.Cluster) {
				of(func(g *clustertest.Gang) { g.Missing = 2 }, job(func(j map[string]any) { delete(j, "status") }))(c)
				c.S.Deployments = c.S.Deployments[1:]
			}},
		})
	}
}

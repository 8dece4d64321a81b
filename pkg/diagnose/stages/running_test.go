package stages_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestRunningWithoutSomeMembers(t *testing.T) {
	check(t, []testCase{
		{name: "what a gang does without has no node", exit: 0, wantText: []string{"worker-1: has no node: 0/2 nodes are available"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Min, g.Nodes = 1, []string{"n1"} }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 Insufficient cpu."}}
				}
			})))
		}},
		{name: "what a gang does without is refused", exit: 0, wantText: []string{"worker-1: has no pod: its creation was refused, last 4s ago: exceeded quota: q"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Min, g.Nodes, g.Missing = 1, []string{"n1"}, 1 }))
			refuse(c, `pods "gang-worker-1" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`)
		}},
		{name: "what is refused is of another role", exit: 0, wantText: []string{"ps-0: has no pod: its creation was refused", "worker-1: has no pod\n"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Min, g.Nodes, g.Missing, g.More = 1, []string{"n1"}, 1, []clustertest.Role{{Name: "PS", Replicas: 1, Missing: 1}}
			}))
			refuse(c, `pods "gang-ps-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`)
		}},
		{name: "what a gang does without is its only master", exit: 0, wantText: []string{"master-0: image reg/m:1 .* cannot be pulled", "no master is up"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Min, g.Nodes = 2, []string{"n1", "n2"}
				g.More = []clustertest.Role{{Name: "Master", Replicas: 1, GPUs: 8, Nodes: []string{"n3"}, Pod: func(_ int, p *corev1.Pod) {
					p.Status.Phase = corev1.PodPending
					p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", Image: "reg/m:1"}}
					waits("ErrImagePull", "manifest unknown")(p)
				}}}
			}))
		}},
		{name: "what a gang does without is kept by a service", exit: 0, also: []answer.Code{answer.NodesBusy}, wantText: []string{"Deployment serving/web holds 8 GPUs on n2 and never ends"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n2").Add(gangOf(2, 8, loose, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
		}},
		{name: "what a gang does without is more than its quota", exit: 0, also: []answer.Code{answer.NSQuotaTooSmall}, wantText: []string{"fix: raise requests.nvidia.com/gpu of quota q to 16"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, loose, func(g *clustertest.Gang) { g.Nodes, g.Missing = []string{"n1"}, 1 }))
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "8"), clustertest.List("requests.nvidia.com/gpu", "8"))
			c.Event("Job", "team", "gang", "job-controller", "FailedCreate", `Error creating: pods "gang-x" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8`, 0)
		}},
		{name: "what a gang does without is held by a gate", exit: 0, also: []answer.Code{answer.SchedulingGated}, wantText: []string{"example.com/approval"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, loose, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/approval"}}
				}
			})))
		}},
		{name: "what a gang does without is stuck on a node that is away", exit: 0, also: []answer.Code{answer.StuckTerminating}, wantText: []string{"fix: bring back node n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			clustertest.NotReady(c.S.Nodes[1], 40*time.Minute)
			c.Add(gangOf(2, 8, bothUp, loose, leaving(-30*time.Minute, 1), func(g *clustertest.Gang) {
				g.BatchJob = func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }
			}))
		}},
		{name: "what a gang does without comes by itself", exit: 0, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, loose, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1"}, 20*time.Second }))
		}},
		{name: "pods of a Job that find each other by name are worth nothing alone", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n2").Add(gangOf(2, 8, loose, func(g *clustertest.Gang) {
				g.Nodes = []string{"n1"}
				g.BatchJob = func(j *batchv1.Job) {
					j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Template.Spec.Subdomain = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2), "gang"
				}
			}))
		}},
	})
}

// loose is a Job of Kubernetes that nothing declares a gang.
func loose(g *clustertest.Gang) { g.Kind, g.NoGroup = "Job", true }

// What has failed for good in a Job that runs, and a group of no effect, are remarked.
func TestRunningRemarks(t *testing.T) {
	check(t, []testCase{
		{name: "an index has failed", exit: 0, wantText: []string{"index 1 has failed for good", "the Job fails when its other pods have ended"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, loose, func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.BatchJob = func(j *batchv1.Job) {
					j.Spec.CompletionMode, j.Spec.Completions, j.Spec.BackoffLimitPerIndex, j.Status.FailedIndexes = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](3), ptr.To[int32](1), ptr.To("1")
				}
			}, pods(indexed(0))))
		}},
		{name: "members were placed by a scheduler that does not read their group", exit: 0, wantText: []string{"its members were placed one by one by default-scheduler, which does not read their PodGroup"}, build: func(c *clustertest.Cluster) {
			c.GangScheduler("").Nodes(2, 8).Add(gangOf(2, 8, scheduledBy(corev1.DefaultSchedulerName), func(g *clustertest.Gang) { g.Volcano, g.Nodes = "default", []string{"n1", "n2"} }))
		}},
	})
}

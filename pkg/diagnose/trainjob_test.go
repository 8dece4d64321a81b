package diagnose

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// afterData has the workers of a JobSet wait for its data.
func afterData(c *clustertest.Cluster) {
	for _, set := range c.S.Custom[jobset.Reader().GroupKind] {
		for _, each := range set.Object["spec"].(map[string]any)["replicatedJobs"].([]any) {
			if item := each.(map[string]any); item["name"] == "node" {
				item["dependsOn"] = []any{map[string]any{"name": "data", "status": "Complete"}}
			}
		}
	}
}

// A TrainJob is one gang, whose pods are those of the JobSet that was made of it.
func TestTrainJob(t *testing.T) {
	train := func(g clustertest.Gang) clustertest.Gang {
		g.Kind = "TrainJob"
		return g
	}
	for _, s := range []scenario{
		{name: "a node short", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait}, wantText: []string{"PLACEMENT 3/4", "24 of 32 GPUs"}, notText: []string{"JobSet gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("busy", 8, "n4").Add(train(waiting(4, 8)))
		}},
		{name: "no node could ever hold a member", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(train(waiting(4, 16)))
		}},
		{name: "suspended by a user", code: answer.JobSuspended, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"trainjob gang", `"suspend":false`}, build: func(c *clustertest.Cluster) {
			g := train(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { job["spec"].(map[string]any)["suspend"] = true }
			c.Nodes(2, 8).Add(g)
		}},
		{name: "its controller is down", code: answer.OperatorDown, exit: 5, wantText: []string{"kubeflow-trainer-controller-manager"}, build: func(c *clustertest.Cluster) {
			g := train(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments[len(c.S.Deployments)-1].Status.ReadyReplicas = 0
		}},
		{name: "data is prepared before the nodes are made", code: answer.BelowQuorum, exit: 3, wantText: []string{"none of its 2 pods exists yet: data of it must complete first"}, build: func(c *clustertest.Cluster) {
			g := train(waiting(2, 8))
			g.Missing, g.Min, g.More = 2, 2, []clustertest.Role{{Name: "Data", Replicas: 1, CPU: "1", Nodes: []string{"n1"}}}
			c.Nodes(4, 8).Add(g)
			afterData(c)
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

package diagnose

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// inOrder has the replicated jobs of a JobSet start one after the other.
func inOrder(job map[string]any) {
	job["spec"].(map[string]any)["startupPolicy"] = map[string]any{"startupPolicyOrder": "InOrder"}
}

// A JobSet is one gang, whose pods are those of the Jobs that it owns.
func TestJobSet(t *testing.T) {
	set := func(g clustertest.Gang) clustertest.Gang {
		g.Kind = "JobSet"
		return g
	}
	for _, s := range []scenario{
		{name: "a node short", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Fewer}, wantText: []string{"PLACEMENT 3/4", "24 of 32 GPUs", "gangctl resize gang --workers 3 --recreate -n team"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("busy", 8, "n4").Add(set(waiting(4, 8)))
		}},
		{name: "no node could ever hold a member", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(set(waiting(4, 16)))
		}},
		{name: "suspended by a user", code: answer.JobSuspended, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"jobset gang", `"suspend":false`}, build: func(c *clustertest.Cluster) {
			g := set(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { job["spec"].(map[string]any)["suspend"] = true }
			c.Nodes(2, 8).Add(g)
		}},
		{name: "its controller is down", code: answer.OperatorDown, exit: 5, wantText: []string{"jobset-controller-manager"}, build: func(c *clustertest.Cluster) {
			g := set(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments[len(c.S.Deployments)-1].Status.ReadyReplicas = 0
		}},
		{name: "its controller is not there", code: answer.OperatorMissing, exit: 5, wantText: []string{"no jobset-controller-manager runs in this cluster"}, notText: []string{"install operator"}, build: func(c *clustertest.Cluster) {
			g := set(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments = c.S.Deployments[:len(c.S.Deployments)-1]
		}},
		{name: "one after the other, as no gang", code: answer.BelowQuorum, exit: 3, wantText: []string{"its pod does not exist yet: worker must be ready first"}, notText: []string{"fits now"}, build: func(c *clustertest.Cluster) {
			g := set(waiting(2, 8))
			g.NoGroup, g.More, g.Nodes = true, []clustertest.Role{{Name: "Driver", Replicas: 1, CPU: "1", Missing: 1}}, []string{"n1", "n2"}
			g.Job = inOrder
			c.Nodes(4, 8).Add(g)
		}},
		{name: "one after the other, and in a gang", code: answer.BelowQuorum, exit: 4, wantText: []string{"BLOCKED", "the others are made only when these run, so it waits for itself", "one after the other, driver after"}, build: func(c *clustertest.Cluster) {
			g := set(waiting(2, 8))
			g.More, g.Job = []clustertest.Role{{Name: "Driver", Replicas: 1, CPU: "1", Missing: 1}}, inOrder
			c.Nodes(4, 8).Add(g)
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

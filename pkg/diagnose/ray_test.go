package diagnose

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// A RayJob is one gang, whose pods are those of the RayCluster that was made of it.
func TestRay(t *testing.T) {
	of := func(kind string, g clustertest.Gang) clustertest.Gang {
		g.Kind = kind
		return g
	}
	for _, s := range []scenario{
		{name: "a node short", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Fewer}, wantText: []string{"PLACEMENT 4/5", "gangctl resize gang --workers 3 -n team"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("busy", 8, "n4").Add(of("RayJob", waiting(4, 8)))
		}},
		{name: "a RayCluster", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(of("RayCluster", waiting(4, 16)))
		}},
		{name: "suspended by a user", code: answer.JobSuspended, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"rayjob gang", `"suspend":false`}, build: func(c *clustertest.Cluster) {
			g := of("RayJob", waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { job["spec"].(map[string]any)["suspend"] = true }
			c.Nodes(2, 8).Add(g)
		}},
		{name: "its operator is down", code: answer.OperatorDown, exit: 5, wantText: []string{"kuberay-operator"}, build: func(c *clustertest.Cluster) {
			g := of("RayJob", waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments[len(c.S.Deployments)-1].Status.ReadyReplicas = 0
		}},
		{name: "its operator is not there", code: answer.OperatorMissing, exit: 5, wantText: []string{"no kuberay-operator runs in this cluster"}, notText: []string{"install operator"}, build: func(c *clustertest.Cluster) {
			g := of("RayJob", waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments = c.S.Deployments[:len(c.S.Deployments)-1]
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// The RayCluster of a RayJob is no job besides it, unless the RayJob is not to be seen.
func TestRayJobIsListedOnce(t *testing.T) {
	c := clustertest.New().Nodes(4, 8).Add(clustertest.Gang{Kind: "RayJob", Name: "gang", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}})
	w := view.New(c.S)
	if all := w.Jobs(); len(all) != 1 || all[0].Kind.Kind != "RayJob" || len(w.Gang(all[0]).ExistingPods()) != 3 {
		t.Errorf("got %v", all)
	}
	for kind := range c.S.Custom {
		if kind.Kind == "RayJob" {
			delete(c.S.Custom, kind)
		}
	}
	w = view.New(c.S)
	if all := w.Jobs(); len(all) != 1 || all[0].Kind.Kind != "RayCluster" || len(w.Gang(all[0]).ExistingPods()) != 3 {
		t.Errorf("without the RayJob: %v", all)
	}
}

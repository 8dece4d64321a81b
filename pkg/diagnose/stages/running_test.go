package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
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
	})
}

package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// silent is a node whose kubelet does not report.
func silent(n *corev1.Node) {
	clustertest.NotReady(n, 10*time.Minute)
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
}

// What is being deleted on a node whose kubelet does not report does not go by itself: nobody waits for that.
func TestNodeAway(t *testing.T) {
	rival := func(left time.Duration) clustertest.Gang { // keeps the gang off its zone
		o := other("a", 0, "n1")
		o.Namespace, o.Spec, o.Pod = "team", apartFrom("training.kubeflow.org/job-name", "gang", "zone"), terminating(left)
		return o
	}
	away := func(c *clustertest.Cluster, left time.Duration) *clustertest.Cluster {
		c.Nodes(2, 8).Add(rival(left)).Add(gangOf(1, 8))
		label(c, "zone", "z1", "z1")
		silent(c.S.Nodes[0])
		return c
	}
	const outOfService = "kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	check(t, []testCase{
		{name: "within its grace period", code: answer.StuckTerminating, exit: 5, first: "^a-worker-0 is stuck in Terminating and keeps workers off zone=z1 .n1, n2. by pod anti-affinity", fix: "bring back node n1", never: []answer.Code{answer.VictimsTerminating}, not: []string{"--force"},
			wantText: []string{"a-worker-0 keeps .* and is being deleted: only the kubelet of its node", "node n1 is not ready for 10m: bring it back", outOfService}, build: func(c *clustertest.Cluster) { away(c, 20*time.Second) }},
		{name: "after it", code: answer.StuckTerminating, exit: 5, wantText: []string{"and should have gone 30s ago: only the kubelet of its node"}, never: []answer.Code{answer.VictimsTerminating}, build: func(c *clustertest.Cluster) { away(c, -30*time.Second) }},
		{name: "out of service", code: answer.VictimsTerminating, exit: 3, never: []answer.Code{answer.StuckTerminating}, build: func(c *clustertest.Cluster) {
			n := away(c, -30*time.Second).S.Nodes[0]
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		}},
		{name: "its kubelet has not reported for a minute", code: answer.VictimsTerminating, exit: 3, never: []answer.Code{answer.StuckTerminating}, build: func(c *clustertest.Cluster) {
			clustertest.NotReady(away(c, 20*time.Second).S.Nodes[0], time.Minute)
			c.S.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
		}},
		{name: "all members of the gang", code: answer.MemberLost, exit: 7, wantText: []string{"worker-0 is being deleted: only the kubelet of its node can confirm that it has ended; its successor is made after that", outOfService},
			fix: "bring back node n1, so that the successors of gang-worker-0, gang-worker-1 are made", not: []string{"--force", "-20s"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 16).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Pod = []string{"n1", "n1"}, terminating(20*time.Second) }))
				silent(c.S.Nodes[0])
			}},
		{name: "its kubelet reports", code: answer.VictimsTerminating, exit: 3, build: func(c *clustertest.Cluster) {
			away(c, -30*time.Second).S.Nodes[0].Status.Conditions[0].Status = corev1.ConditionFalse
		}},
		{name: "the room is on its node", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.StuckTerminating}, never: []answer.Code{answer.VictimsTerminating}, build: func(c *clustertest.Cluster) {
			o := other("a", 8, "n1")
			o.Pod = terminating(20 * time.Second)
			c.Nodes(1, 8).Add(o).Add(gangOf(1, 8))
			silent(c.S.Nodes[0])
		}},
		{name: "a member of the gang", code: answer.MemberLost, exit: 7, wantText: []string{"it does not go by itself: only the kubelet of its node can confirm that it has ended"}, not: []string{"at the latest"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 0 {
						terminating(20*time.Second)(i, p)
					}
				}
			}))
			silent(c.S.Nodes[0])
		}},
		{name: "a volume for one pod", code: answer.VolumeMultiAttach, exit: 5, first: "claim data is ReadWriteOncePod, and user-worker-0 uses it on n1, stuck in Terminating", fix: "bring back node n1", not: []string{"--force"},
			wantText: []string{"only the kubelet of its node can confirm that it has ended", outOfService}, build: func(c *clustertest.Cluster) {
				boundClaim(c, "", corev1.ReadWriteOncePod)
				c.Nodes(2, 8).Add(clustertest.Gang{Name: "user", Workers: 1, Nodes: []string{"n1"}, Spec: mounting("data"), Pod: terminating(-10 * time.Second)}).Add(gangOf(1, 8, mounts("data")))
				silent(c.S.Nodes[0])
			}},
	})
}

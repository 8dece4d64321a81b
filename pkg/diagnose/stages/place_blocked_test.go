package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestBlocked(t *testing.T) {
	check(t, []testCase{
		{name: "a node is away: only those that matter are named", code: answer.NodeNotReady, exit: 5, first: "^n2 is not ready", not: []string{"cpu1"}, wantText: []string{"n2 is not ready for 26m"}, fix: "repair n2", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			clustertest.NotReady(c.S.Nodes[1], 26*time.Minute)
			clustertest.NotReady(c.Node("cpu1", 0), time.Hour)
		}},
		{name: "a node under pressure", code: answer.NodeNotReady, exit: 5, wantText: []string{"disk-pressure"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "cordoned: only those that matter", code: answer.NodeNotReady, exit: 5, first: "^n2 is cordoned", not: []string{"cpu1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.S.Nodes[1].Spec.Unschedulable = true
			c.Node("cpu1", 0).Spec.Unschedulable = true
		}},
		{name: "sick devices", code: answer.GPUUnhealthy, exit: 5, first: "n1 has 7 of 8 GPUs healthy", build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			c.Add(gangOf(1, 8))
		}},
		{name: "sick devices of another kind do not matter", code: answer.GPUUnhealthy, exit: 5, not: []string{"rdma"}, build: func(c *clustertest.Cluster) {
			n := c.Node("n1", 8)
			n.Status.Allocatable["nvidia.com/gpu"], n.Status.Allocatable["rdma/hca"] = resource.MustParse("7"), resource.MustParse("0")
			n.Status.Capacity["rdma/hca"] = resource.MustParse("1")
			c.Add(gangOf(1, 8))
		}},
		{name: "enough healthy ones are left", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.GPUUnhealthy}, build: func(c *clustertest.Cluster) {
			n := c.Node("n1", 8)
			n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			c.Runs("a", 4, "n1").Add(gangOf(1, 7))
		}},
		{name: "stuck, by a finalizer", code: answer.StuckTerminating, exit: 5, first: "a-worker-0 is stuck in Terminating", wantText: []string{"holds 8 GPUs on n1.*40m.*finalizer example.com/ckpt"}, fix: "clear a-worker-0", build: func(c *clustertest.Cluster) {
			o := other("a", 8, "n1")
			o.Pod = terminating(-40*time.Minute, "example.com/ckpt")
			c.Nodes(1, 8).Add(o).Add(gangOf(1, 8))
		}},
		{name: "stuck elsewhere does not matter", code: answer.StuckTerminating, exit: 5, not: []string{"b-worker-0"}, build: func(c *clustertest.Cluster) {
			o, b := other("a", 8, "n1"), other("b", 0, "cpu1")
			o.Pod, b.Pod = terminating(-40*time.Minute), terminating(-40*time.Minute)
			c.Nodes(1, 8)
			c.Node("cpu1", 0)
			c.Add(o).Add(b).Add(gangOf(1, 8))
		}},
		{name: "stuck on a node that is away", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.StuckTerminating}, wantText: []string{"its node is not ready"}, build: func(c *clustertest.Cluster) {
			o := other("a", 8, "n1")
			o.Pod = terminating(-40 * time.Minute)
			c.Nodes(1, 8).Add(o).Add(gangOf(1, 8))
			clustertest.NotReady(c.S.Nodes[0], time.Hour)
		}},
		{name: "two repairs are needed", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.NodeNotReady}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			clustertest.NotReady(c.S.Nodes[0], time.Hour)
			c.S.Nodes[1].Spec.Unschedulable = true
		}},
		{name: "jobs end before anybody has to repair", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.NodeNotReady}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
			clustertest.NotReady(c.S.Nodes[2], time.Hour)
		}},
	})
}

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
		{name: "cordoned, and the others are too few", code: answer.NodeNotReady, exit: 5, first: "^n2 is cordoned, and the others are too few: 1/2 members fit; 8 of 8 GPUs free on the 1 node that gang may use, and it needs 2 workers with 8 GPUs each, 16 in all$", wantText: []string{"n2 is cordoned for 5h", "1 of 2 members fit now"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			at := clustertest.Ago(5 * time.Hour)
			c.S.Nodes[1].Spec.Unschedulable, c.S.Nodes[1].Spec.Taints = true, []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at}}
		}},
		{name: "cordoned, with a pod that a budget keeps there", code: answer.NodeNotReady, exit: 5, first: "^n2 is cordoned", wantText: []string{"if n2 is being drained, that waits: PodDisruptionBudget research/a lets none of 1 pod go"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 4, "n2").Add(gangOf(3, 4))
			guard(c, "research", "a", "training.kubeflow.org/job-name", "a", 0)
			c.S.Nodes[1].Spec.Unschedulable = true
		}},
		{name: "cordoned, and the labels are on no other node", code: answer.NodeNotReady, exit: 5, first: "^n1 is cordoned, and no other node takes a worker: n2, n3 .nodeSelector class=h100.$", not: []string{"too few"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(1, 8, spec(selects("class", "h100"))))
			label(c, "class", "h100", "a100", "a100")
			c.S.Nodes[0].Spec.Unschedulable = true
		}},
		{name: "cordoned, and the others are in another zone than the volume", code: answer.NodeNotReady, exit: 5, first: "^n1 is cordoned, and no other node takes a worker: the volume of claim data is in z1 .topology.kubernetes.io/zone.$", not: []string{"too few", "dedicated"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(1, 8, mounts("data")))
			label(c, corev1.LabelTopologyZone, "z1", "z2", "z2")
			boundClaim(c, "z1", corev1.ReadWriteMany)
			c.S.Nodes[0].Spec.Unschedulable = true
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "cordoned, and no zone has room for all", code: answer.NodeNotReady, exit: 5, first: "^n1, n3 are cordoned, and the others do not help: 1/2 members fit; all 2 members must share one value of zone: z1 has room for 1, z2 for 1$", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "zone") })))
			label(c, "zone", "z1", "z1", "z2", "z2")
			c.S.Nodes[0].Spec.Unschedulable, c.S.Nodes[2].Spec.Unschedulable = true, true
		}},
		{name: "a node is away, and cpu is short without it", code: answer.NodeNotReady, exit: 5, first: "^n2 is not ready, and the others are too few: 1/2 members fit; cpu is short, all else would fit: each worker requests 90, 180 in all, and nodes have 96 of 96 left", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 2, func(g *clustertest.Gang) { g.CPU = "90" }))
			clustertest.NotReady(c.S.Nodes[1], time.Hour)
		}},
		{name: "the only node is away", code: answer.NodeNotReady, exit: 5, first: "^n1 is not ready, and there is no other node: 0/1 members fit$", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8))
			clustertest.NotReady(c.S.Nodes[0], time.Hour)
		}},
		{name: "sick devices", code: answer.GPUUnhealthy, exit: 5, first: "n1 has 7 of 8 GPUs healthy", build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			c.Add(gangOf(1, 8))
		}},
		{name: "devices that a plugin which crashes does not report", code: answer.GPUUnhealthy, exit: 5, first: "n2 has 0 of 8 GPUs healthy; its device plugin does not run there$", fix: "get DaemonSet kube-system/nvidia-device-plugin to run on n2",
			wantText: []string{"device plugin kube-system/nvidia-device-plugin: 1/2 ready", "pod nvidia-device-plugin-n2 on n2: CrashLoopBackOff, 88 restarts", "logs nvidia-device-plugin-n2 --previous"}, build: func(c *clustertest.Cluster) {
				plugin(c, "nvidia-device-plugin", 1, 2)
				c.Nodes(2, 8).Add(gangOf(2, 8))
				pluginPod(c, "nvidia-device-plugin", "n1").Status.ContainerStatuses = nil
				pluginPod(c, "nvidia-device-plugin", "n2")
				c.S.Nodes[1].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0")
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
		{name: "stuck with a host port", code: answer.StuckTerminating, exit: 5, first: "^a-worker-0 is stuck in Terminating and holds host port 2222 on n1: a host port keeps it from the room that there is: 1 of 2 members fit",
			wantText: []string{"pod research/a-worker-0 holds host port 2222 on n1 and should have gone 40m ago"}, not: []string{"b-worker-0", " 0 GPUs"}, build: func(c *clustertest.Cluster) {
				port := func(p *corev1.PodSpec) { p.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 2222}} }
				o, b := other("a", 0, "n1"), other("b", 0, "n2")
				o.Pod, b.Pod, o.Spec = terminating(-40*time.Minute), terminating(-40*time.Minute), port
				c.Nodes(2, 8).Add(o).Add(b).Add(gangOf(2, 8, spec(port)))
			}},
		{name: "stuck elsewhere does not matter", code: answer.StuckTerminating, exit: 5, not: []string{"b-worker-0"}, build: func(c *clustertest.Cluster) {
			o, b := other("a", 8, "n1"), other("b", 0, "cpu1")
			o.Pod, b.Pod = terminating(-40*time.Minute), terminating(-40*time.Minute)
			c.Nodes(1, 8)
			c.Node("cpu1", 0)
			c.Add(o).Add(b).Add(gangOf(1, 8))
		}},
		{name: "stuck on a node that is away", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.StuckTerminating}, wantText: []string{"only the kubelet of its node can confirm"}, build: func(c *clustertest.Cluster) {
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

package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// having gives every node an amount of a resource.
func having(c *clustertest.Cluster, name, amount string) {
	for _, n := range c.S.Nodes {
		n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(amount)
		n.Status.Capacity[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
}

// using is a job with one worker that requests pairs of resource and amount on each node.
func using(name string, nodes []string, pairs ...string) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: name, Workers: len(nodes), Nodes: nodes, Spec: requests(pairs...)}
}

func requests(pairs ...string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		for resource, q := range clustertest.List(pairs...) {
			p.Containers[0].Resources.Requests[resource] = q
			p.Containers[0].Resources.Limits[resource] = q
		}
	}
}

// What binds is the headline, whatever else is short, with its own numbers.
func TestHeadlineByProof(t *testing.T) {
	requestingAll := func(pairs ...string) func(*clustertest.Gang) { return spec(requests(pairs...)) }
	taint := []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
	check(t, []testCase{
		{name: "memory, though GPUs are short on other nodes", code: answer.InsufficientMemory, exit: 3, first: `^memory is short on n1, all else would fit there: 48Gi of 768Gi left, and each worker requests 64Gi, 128Gi in all; n2 is short of GPUs .0 of 8 left, 4 requested.$`, wantText: []string{"research/b holds 720Gi memory on n1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(using("b", []string{"n1"}, "memory", "720Gi")).Add(gangOf(2, 4))
		}},
		{name: "huge pages", code: answer.NodesBusy, exit: 3, first: "4Gi of 16Gi hugepages-2Mi free on the 2 nodes that gang may use, as 2Gi.2Gi, and it needs 2 workers with 4Gi hugepages-2Mi each, 8Gi in all", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			having(c, "hugepages-2Mi", "8Gi")
			c.Add(using("a", []string{"n1", "n2"}, "hugepages-2Mi", "6Gi")).Add(gangOf(2, 4, requestingAll("hugepages-2Mi", "4Gi")))
		}},
		{name: "a second device", code: answer.NodesBusy, exit: 3, first: "0 of 2 rdma/hca free on the 2 nodes that gang may use, and it needs 2 workers with 1 rdma/hca each", wantText: []string{"research/a holds 2 rdma/hca"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			having(c, "rdma/hca", "1")
			c.Add(using("a", []string{"n1", "n2"}, "rdma/hca", "1")).Add(gangOf(2, 8, requestingAll("rdma/hca", "1")))
		}},
		{name: "disk that pods of no job use", code: answer.InsufficientStorage, exit: 3, first: "ephemeral-storage is short", wantText: []string{"Pod research/a-worker-0 holds 1000Gi ephemeral-storage on n1"}, build: func(c *clustertest.Cluster) {
			bare := using("a", []string{"n1"}, "ephemeral-storage", "1000Gi")
			bare.Pod = func(_ int, p *corev1.Pod) { p.OwnerReferences, p.Spec.RestartPolicy = nil, corev1.RestartPolicyNever }
			c.Nodes(1, 8).Add(bare).Add(gangOf(1, 8, requestingAll("ephemeral-storage", "100Gi")))
		}},
		{name: "what a DaemonSet takes", code: answer.TooBig, exit: 6, first: "each worker requests 64 cpu, and the largest node has 46 left: of 96, DaemonSets use 50", wantText: []string{"DaemonSet kube-system/agent holds 100 cpu on n1, n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Daemon("agent", "n1", "50")
			c.Daemon("agent", "n2", "50")
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "64" }))
		}},
		{name: "the role that binds, not the one with devices", code: answer.InsufficientMemory, exit: 3, first: "each PS requests 100Gi", wantText: []string{"short on n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Node("n2", 0)
			label(c, "pool", "gpu", "cpu")
			c.Add(using("a", []string{"n2"}, "memory", "700Gi")).Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Memory: "100Gi", Spec: selects("pool", "cpu")}}
			}))
		}},
		{name: "roles that request the same count together", code: answer.TooBig, exit: 6, first: `it needs 3 members with 4 GPUs each .1 chief, 2 workers., 12 in all, and the whole cluster has 8 GPUs on 1 node`, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 4, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 4}} }))
		}},
		{name: "the labels by which the nodes are chosen", code: answer.NodesBusy, exit: 3, first: "0 of 8 GPUs free on the 1 node with class=h100, and it needs 1 worker with 8 GPUs", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(selects("class", "h100"))))
			label(c, "class", "h100", "a100")
		}},
		{name: "a taint that only one role tolerates", code: answer.TooBig, exit: 6, first: "the 1 node that it may use .it does not tolerate taint dedicated=infra:NoSchedule of n2. has 8 GPUs", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.S.Nodes[1].Spec.Taints = taint
		}},
		{name: "a taint of a node with room, and of one without GPUs", code: answer.NodesBusy, exit: 3, wantText: []string{"(?m)it would fit if it tolerated taint dedicated=infra:NoSchedule of n2$"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("c1", 0).Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
			c.Runs("a", 8, "n1").Add(gangOf(1, 8))
			c.S.Nodes[1].Spec.Taints = taint
		}},
		{name: "two resources together", code: answer.NodesBusy, exit: 3, first: "0 of 8 GPUs free on the 1 node that gang may use, and it needs 1 worker with 8 GPUs; and memory is short: each worker requests 64Gi, and nodes have at most 0 of 768Gi left", also: []answer.Code{answer.InsufficientMemory}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(using("a", []string{"n1"}, "memory", "768Gi", "nvidia.com/gpu", "8")).Add(gangOf(1, 8))
		}},
		{name: "cpu in pieces", code: answer.InsufficientCPU, exit: 3, first: `each worker requests 60, 120 in all; 180 of 288 are left, but as 80\+50\+50`, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(using("a", []string{"n1"}, "cpu", "16")).Add(using("b", []string{"n2", "n3"}, "cpu", "46")).Add(gangOf(2, 1, func(g *clustertest.Gang) { g.CPU = "60" }))
		}},
		{name: "too big in one, and the other is in use", code: answer.TooBig, exit: 6, first: "each worker requests 200 cpu", also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "200" }))
		}},
		{name: "what is busy besides a label that is not there", code: answer.SelectorNoMatch, exit: 4, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(selects("class", "b200"))))
		}},
		{name: "a role that the minimum can do without", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.SelectorNoMatch}, wantText: []string{"some of the others cannot be placed: no node has the label class=b200"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.Min, g.More = 1, []clustertest.Role{{Name: "PS", Replicas: 1, Spec: selects("class", "b200")}}
			}))
		}},
		{name: "services hold what is not the device", code: answer.NodesBusy, exit: 5, first: "Deployment serving/web holds 92 cpu on n1 and never ends: cpu is short, all else would fit: each worker requests 8, and nodes have at most 4 of 96 left", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).ServesWith("web", 0, "92", "n1").Add(gangOf(1, 8))
		}},
	})
}

// No resource is short on all nodes: each node lacks another one, and the sentence has them with their numbers.
func TestScattered(t *testing.T) {
	cpu := func(g *clustertest.Gang) { g.CPU = "32" }
	check(t, []testCase{
		{name: "cpu on one node, memory on the other", code: answer.InsufficientCPU, exit: 3, first: "^cpu is short on n1, all else would fit there: 8 of 96 left, and each worker requests 32; n2 is short of memory .28Gi of 768Gi left, 64Gi requested.$",
			wantText: []string{"TFJob research/a holds 88 cpu on n1", "TFJob research/b holds 740Gi memory on n2"}, not: []string{"short on n1, n2"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(using("a", []string{"n1"}, "cpu", "88")).Add(using("b", []string{"n2"}, "memory", "740Gi")).Add(gangOf(1, 8, cpu))
			}},
		{name: "both are needed", code: answer.InsufficientCPU, exit: 3, first: "^cpu is short on n1: 8 of 96 left, and each worker requests 32, 64 in all; n2 is short of memory .28Gi of 768Gi left, 64Gi requested.$", also: []answer.Code{answer.InsufficientMemory}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(using("a", []string{"n1"}, "cpu", "88")).Add(using("b", []string{"n2"}, "memory", "740Gi")).Add(gangOf(2, 8, cpu))
		}},
		{name: "a node has GPUs enough, and is short of something else", code: answer.NodesBusy, exit: 3, first: "^GPUs are short on n3, all else would fit there: 4 of 8 left, and each worker requests 8, 16 in all; n1 is short of cpu .8 of 96 left, 32 requested.; n2 is short of memory .28Gi of 768Gi left, 64Gi requested.$",
			not: []string{"FRAGMENTED", "on one node"}, build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(using("a", []string{"n1"}, "cpu", "88")).Add(using("m", []string{"n2"}, "memory", "740Gi")).Runs("b", 4, "n3").Add(gangOf(2, 8, cpu))
			}},
		{name: "huge pages in pieces, of which one is large enough", code: answer.NodesBusy, exit: 3, first: "^hugepages-2Mi is short on n1, all else would fit there: 2Gi of 8Gi left, and each worker requests 4Gi; n2 is short of GPUs .4 of 8 left, 8 requested.$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			having(c, "hugepages-2Mi", "8Gi")
			c.Add(using("a", []string{"n1"}, "hugepages-2Mi", "6Gi")).Runs("b", 4, "n2").Add(gangOf(1, 8, spec(requests("hugepages-2Mi", "4Gi"))))
		}},
		{name: "a node that has none of it is no choice", code: answer.InsufficientCPU, exit: 3, first: "^cpu is short, all else would fit: each worker requests 32", wantText: []string{"\nshort on n1\n"}, not: []string{"short of", "short on n1, n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Node("n2", 0)
			c.Add(using("a", []string{"n1"}, "cpu", "88")).Add(gangOf(1, 8, cpu))
		}},
		{name: "services have one resource each", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 92 cpu on n1 and never ends, Deployment serving/gpus holds 8 GPUs on n2 and never ends: GPUs are short on n2, all else would fit there: 0 of 8 left, and each worker requests 8, 16 in all; n1 is short of cpu .4 of 96 left, 8 requested.$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).ServesWith("web", 0, "92", "n1").Serves("gpus", 8, "n2").Add(gangOf(2, 8))
		}},
	})
}

package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

func TestTooBig(t *testing.T) {
	check(t, []testCase{
		{name: "a static pod uses what is missing", code: answer.TooBig, exit: 6, first: "the largest node has 94 left: of 96, static pods use 2", wantText: []string{"Pod kube-system/proxy-n1 holds 2 cpu on n1"}, not: []string{"DaemonSet", "Node kube-system"}, build: func(c *clustertest.Cluster) {
			p := c.Nodes(1, 8).Daemon("proxy", "n1", "2")
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "v1", "Node", "n1"
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "96" }))
		}},
		{name: "a node that is being deleted does not count", code: answer.TooBig, exit: 6, wantText: []string{"not counted: n2 .being deleted."}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			at := clustertest.Ago(time.Minute)
			c.S.Nodes[1].DeletionTimestamp = &at
		}},
		{name: "one member", code: answer.TooBig, exit: 6, first: "each worker requests 16 GPUs, and the largest node has 8", build: func(c *clustertest.Cluster) { c.Nodes(4, 8).Add(gangOf(1, 16)) }},
		{name: "thousandths of a core", code: answer.TooBig, exit: 6, first: "each worker requests 500 cpu", wantText: []string{"500 cpu are whole cores: were 500m meant"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 0, func(g *clustertest.Gang) { g.CPU = "500" }))
		}},
		{name: "more cores than any node has, with devices", code: answer.TooBig, exit: 6, not: []string{"meant"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "500" }))
		}},
		{name: "thousandths of cores, with devices", code: answer.TooBig, exit: 6, wantText: []string{"8000 cpu are whole cores: were 8000m meant"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "8000" }))
		}},
		{name: "more cores than the nodes have that it may use", code: answer.TooBig, exit: 6, not: []string{"meant"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 0, func(g *clustertest.Gang) { g.CPU = "120" }))
		}},
		{name: "all members", code: answer.TooBig, exit: 6, first: "it needs 6 workers with 8 GPUs each, 48 in all, and the whole cluster has 32 GPUs on 4 nodes", wantText: []string{"4 of 6 members"}, build: func(c *clustertest.Cluster) { c.Nodes(4, 8).Add(gangOf(6, 8)) }},
		{name: "what DaemonSets use does not come back", code: answer.TooBig, exit: 6, first: "requests 96 cpu, and the largest node has 94 left: of 96, DaemonSets use 2", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Daemon("agent", "n1", "2")
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "96" }))
		}},
		{name: "a side-car requests too", code: answer.TooBig, exit: 6, first: "16 GPUs", wantText: []string{"container tensorflow requests 8, container side requests 8"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				r := clustertest.List("nvidia.com/gpu", "8")
				p.Containers = append(p.Containers, corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Requests: r, Limits: r}})
			})))
		}},
		{name: "an init container that stays requests too, and not GPUs", code: answer.TooBig, exit: 6, first: "each worker requests 98 cpu, and the largest node has 96", wantText: []string{"cpu: container tensorflow requests 90, init container proxy requests 8"}, not: []string{"GPUs are there"}, build: func(c *clustertest.Cluster) {
			always := corev1.ContainerRestartPolicyAlways
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "90" }, spec(func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "8")}}}
			})))
		}},
		{name: "the nodes that it may use have none, and too little memory, which is of no matter", code: answer.TooBig, exit: 6, first: "each worker requests 8 GPUs, and no node with pool=cpu has any", not: []string{"memory, and"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Node("n2", 0).Status.Allocatable["memory"] = resource.MustParse("32Gi")
			label(c, "pool", "gpu", "cpu")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "cpu"} })))
		}},
		{name: "a taint on nodes that are too few", code: answer.TooBig, exit: 6, first: "^it needs 4 workers with 8 GPUs each, 32 in all, and the whole cluster has 24 GPUs on 3 nodes; and no node takes a worker: n1, n2, n3 .24 GPUs. have taint team=a:NoSchedule, which it does not tolerate$", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(4, 8))
			for _, n := range c.S.Nodes {
				n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
			}
		}},
		{name: "a taint on nodes that are busy", code: answer.TooBig, exit: 6, first: "^no node takes a worker: n1, n2, n3 .24 GPUs. have taint team=a:NoSchedule, which it does not tolerate$", wantText: []string{"8 of 24 GPUs free on the 3 nodes that gang may use once it tolerates their taints"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8))
			for _, n := range c.S.Nodes {
				n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
			}
		}},
		{name: "the nodes that it may use have none", code: answer.TooBig, exit: 6, first: "each worker requests 8 GPUs, and no node with pool=cpu has any", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Node("n2", 0)
			label(c, "pool", "gpu", "cpu")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "cpu"} })))
		}},
		{name: "with every node repaired it would fit", code: answer.NodeNotReady, exit: 5, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			clustertest.NotReady(c.S.Nodes[0], time.Hour)
		}},
		{name: "all nodes are tainted", code: answer.TooBig, exit: 6, first: `^no node takes a worker: n1, n2 .16 GPUs. have taint dedicated=infra:NoSchedule, which it does not tolerate$`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			for _, n := range c.S.Nodes {
				n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
			}
		}},
		{name: "the nodes with devices have another taint than the control plane", code: answer.TooBig, exit: 6, wantText: []string{`cp .taint node-role.kubernetes.io/control-plane:NoSchedule.`},
			first: `^no node takes a worker: n1, n2, n3 .24 GPUs. have taint nvidia.com/gpu=present:NoSchedule, which it does not tolerate, n4 .8 GPUs. has taint dedicated=nlp:NoSchedule, which it does not tolerate$`, build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8).Node("cp", 0)
				c.Add(gangOf(2, 8))
				for i, n := range c.S.Nodes {
					n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
					switch i {
					case 3:
						n.Spec.Taints[0].Key, n.Spec.Taints[0].Value = "dedicated", "nlp"
					case 4:
						n.Spec.Taints[0] = corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
					}
				}
			}},
		{name: "packing", code: answer.TooBig, exit: 6, first: "room for 2", build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(3, 5)) }},
		{name: "no node", code: answer.TooBig, exit: 6, first: "no node", build: func(c *clustertest.Cluster) { c.Add(gangOf(1, 1)) }},
		{name: "one role of two", code: answer.TooBig, exit: 6, first: "each PS requests 200 cpu", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1, CPU: "200"}} }))
		}},
		{name: "cards of another maker", code: answer.TooBig, exit: 6, first: "each worker requests 16 GPUs", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			offers(c, "amd.com/gpu", "8")
			c.Add(gangOf(1, 0, requesting("amd.com/gpu", "16")))
		}},
	})
}

// A search that has no time reports that, and not that there is no placement.
func TestOutOfTime(t *testing.T) {
	build := func(c *clustertest.Cluster) {
		for i := range 12 {
			c.Node("n"+string(rune('a'+i)), int64(5+i%4))
		}
		g := gangOf(7, 3)
		for i, n := range []int64{2, 4, 5} {
			g.More = append(g.More, clustertest.Role{Name: "R" + string(rune('a'+i)), Replicas: 5, GPUs: n, Spec: func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") }})
		}
		c.Add(g)
	}
	got := diagnose(t, build, stages.Options{Budget: time.Nanosecond})
	testCase{code: answer.SearchIncomplete, exit: 8, first: "no placement was found in time", never: []answer.Code{answer.TooBig, answer.NodesBusy}}.check(t, got)
	if slow := diagnose(t, build, stages.Options{Budget: 5 * time.Second}); slow.Primary.Code == answer.SearchIncomplete {
		t.Error("not even time helps: the test proves nothing")
	}
}

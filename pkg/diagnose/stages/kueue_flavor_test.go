package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What keeps a job off the flavor that has enough is its own rule, and the user can change that.
func TestKueueFlavorRules(t *testing.T) {
	two := func(c *clustertest.Cluster, h100, a100 string) {
		c.Nodes(4, 8).LocalQueue("lq", "cq")
		c.Flavor("h100", "class", "h100")
		c.Flavor("a100", "class", "a100")
		c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: h100}, clustertest.Quota{Flavor: "a100", Resource: "nvidia.com/gpu", Nominal: a100})
		for i, n := range c.S.Nodes {
			n.Labels["class"] = []string{"h100", "a100"}[i/2]
		}
	}
	of := func(class string) func(*clustertest.Gang) {
		return spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": class} })
	}
	spot := func(c *clustertest.Cluster) {
		two(c, "8", "16")
		set([]any{map[string]any{"key": "spot", "value": "true", "effect": "NoSchedule"}}, "spec", "nodeTaints")(c.S.Custom[kindOf("kueue.x-k8s.io", "ResourceFlavor")][1].Object)
		for _, n := range c.S.Nodes[2:] {
			n.Spec.Taints = []corev1.Taint{{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	check(t, []testCase{
		{name: "a selector", code: answer.QueueTooSmall, exit: 4, first: "cannot admit it as it is: .*8 GPUs in all .flavor h100.*needs 16; flavor a100 has 16 GPUs, and the nodeSelector class=h100 of Worker keeps it off that", fix: "require class=a100: for flavor a100 there is quota",
			wantText: []string{"fix: raise nominalQuota"}, build: func(c *clustertest.Cluster) {
				two(c, "8", "16")
				c.Add(gangOf(2, 8, of("h100"), kueued))
			}},
		{name: "a taint", code: answer.QueueTooSmall, exit: 4, first: "flavor a100 has 16 GPUs, and the lack of a toleration of spot=true:NoSchedule", fix: "tolerate the taint spot=true:NoSchedule", build: func(c *clustertest.Cluster) {
			spot(c)
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "a selector that no flavor has", code: answer.QueueTooSmall, exit: 4, first: "cannot admit it as it is: Worker may use none of the flavors", wantText: []string{"flavor a100 has 16 GPUs, and the nodeSelector class=b200"}, fix: "require class=a100", build: func(c *clustertest.Cluster) {
			two(c, "8", "16")
			c.S.Nodes[0].Labels["class"] = "b200"
			c.Add(gangOf(2, 8, of("b200"), kueued))
		}},
		{name: "both are too small", code: answer.QueueTooSmall, exit: 6, first: "can never admit it", not: []string{"keeps it off"}, build: func(c *clustertest.Cluster) {
			two(c, "8", "8")
			c.Add(gangOf(2, 8, of("h100"), kueued))
		}},
		{name: "there is no node of the other", code: answer.QueueTooSmall, exit: 6, first: "can never admit it", not: []string{"keeps it off"}, build: func(c *clustertest.Cluster) {
			two(c, "8", "16")
			c.S.Nodes[2].Labels["class"], c.S.Nodes[3].Labels["class"] = "h100", "h100"
			c.Add(gangOf(2, 8, of("h100"), kueued))
		}},
		{name: "there is no node of the other, and a check has some made", code: answer.QueueTooSmall, exit: 4, first: "nodeSelector class=h100 of Worker keeps it off that", build: func(c *clustertest.Cluster) {
			two(c, "8", "16")
			c.S.Nodes[2].Labels["class"], c.S.Nodes[3].Labels["class"] = "h100", "h100"
			queues := c.S.Custom[kindOf("kueue.x-k8s.io", "ClusterQueue")]
			set([]any{map[string]any{"name": "dws"}}, "spec", "admissionChecksStrategy", "admissionChecks")(queues[0].Object)
			c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "dws"}, "spec": map[string]any{"controllerName": "kueue.x-k8s.io/provisioning-request"}})
			c.Add(gangOf(2, 8, of("h100"), kueued))
		}},
		{name: "it is used now, and the other is free", code: answer.KueueQuota, exit: 3, wantText: []string{"flavor a100 has 16 GPUs, and the nodeSelector class=h100 of Worker keeps it off that"}, fix: "require class=a100", build: func(c *clustertest.Cluster) {
			two(c, "16", "16")
			owner(c, "other")
			clustertest.Admit(c.Workload("other", "lq", 0), "cq", "h100", "16")
			c.Add(gangOf(2, 8, of("h100"), kueued))
		}},
	})
}

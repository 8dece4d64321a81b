package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// selects requests nodes with labels, given as pairs of key and value.
func selects(pairs ...string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.NodeSelector[pairs[i]] = pairs[i+1]
		}
	}
}

func TestSelector(t *testing.T) {
	needs := func(terms ...corev1.NodeSelectorTerm) func(*clustertest.Gang) {
		return spec(func(p *corev1.PodSpec) {
			p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		})
	}
	term := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	check(t, []testCase{
		{name: "a value with a slip", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label class=h1oo", wantText: []string{"class: a100 .1 node., h100 .1 node.", "did you mean h100"}, fix: "require class=h100", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("class", "h1oo"))))
			label(c, "class", "h100", "a100")
		}},
		{name: "no node that the image is built for", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label kubernetes.io/arch=arm64", not: []string{"did you mean"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("kubernetes.io/arch", "arm64"))))
			label(c, "kubernetes.io/arch", "amd64", "amd64")
		}},
		{name: "an architecture with a slip", code: answer.SelectorNoMatch, exit: 4, wantText: []string{"did you mean amd64"}, fix: "require kubernetes.io/arch=amd64", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("kubernetes.io/arch", "amd46"))))
			label(c, "kubernetes.io/arch", "amd64", "amd64")
		}},
		{name: "a key with a slip", code: answer.SelectorNoMatch, exit: 4, wantText: []string{"no node has a label gpu-tpye at all", "did you mean the label gpu-type"}, fix: "require gpu-type=", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("gpu-tpye", "h100"))))
			label(c, "gpu-type", "h100", "h100")
		}},
		{name: "each label is there, but not on one node", code: answer.SelectorNoMatch, exit: 4, first: "together: class=h100, disk=ssd", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("class", "h100", "disk", "ssd"))))
			label(c, "class", "h100", "a100")
			label(c, "disk", "hdd", "ssd")
		}},
		{name: "one that a policy puts into the pods", code: answer.SelectorNoMatch, exit: 5, first: "^no node has the label class=gold, and the job itself has no such rule: MutatingAdmissionPolicy pin-gold puts it into its pods$",
			wantText: []string{"describe mutatingadmissionpolicy.admissionregistration.k8s.io pin-gold"}, not: []string{"fix: "}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, pods(func(_ int, p *corev1.Pod) { selects("class", "gold")(&p.Spec) })))
				label(c, "class", "h100", "a100")
				c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": "pin-gold"},
					"spec": map[string]any{"mutations": []any{map[string]any{"applyConfiguration": map[string]any{"expression": `Object{spec: Object.spec{nodeSelector: {"class": "gold"}}}`}}}}})
			}},
		{name: "one that admission puts into the pods, it is not known what", code: answer.SelectorNoMatch, exit: 5, first: "a webhook or a policy of admission puts it into its pods$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, pods(func(_ int, p *corev1.Pod) { selects("class", "gold")(&p.Spec) })))
		}},
		{name: "one of the namespace, which one node has", code: answer.TooBig, exit: 6, wantText: []string{"the job itself does not require class=gold: annotation scheduler.alpha.kubernetes.io/node-selector of namespace team puts it into its pods", "get namespace team -o yaml"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, pods(func(_ int, p *corev1.Pod) { selects("class", "gold")(&p.Spec) })))
			label(c, "class", "gold", "h100")
			c.S.Namespaces[0].Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "class=gold"}
		}},
		{name: "an affinity", code: answer.SelectorNoMatch, exit: 4, first: `class=b200\|gb200`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, needs(term("class", corev1.NodeSelectorOpIn, "b200", "gb200"))))
			label(c, "class", "h100", "h100")
		}},
		{name: "a node that is gone, by its name", code: answer.SelectorNoMatch, exit: 4, first: "^there is no node n9, which Worker requires$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n9"}}}}}}}}
			})))
		}},
		{name: "a label that must exist", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label nvlink", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, needs(term("nvlink", corev1.NodeSelectorOpExists))))
		}},
		{name: "a label that must not be", code: answer.SelectorNoMatch, exit: 4, first: "no node.*spot", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, needs(term("spot", corev1.NodeSelectorOpDoesNotExist))))
			label(c, "spot", "true", "true")
		}},
		{name: "one of two terms matches", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, needs(term("class", corev1.NodeSelectorOpIn, "b200"), term("class", corev1.NodeSelectorOpIn, "h100"))))
			label(c, "class", "h100", "h100")
		}},
		{name: "neither of two terms matches", code: answer.SelectorNoMatch, exit: 4, first: "no node.*its node affinity|no node.*class", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, needs(term("class", corev1.NodeSelectorOpIn, "b200"), term("class", corev1.NodeSelectorOpIn, "gb200"))))
			label(c, "class", "h100", "h100")
		}},
		{name: "too few nodes with the label: that is another matter", code: answer.TooBig, exit: 6, wantText: []string{"not counted: n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("class", "h100"))))
			label(c, "class", "h100", "a100")
		}},
		{name: "the node with the label is full", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.SelectorNoMatch}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(selects("class", "h100"))))
			label(c, "class", "h100", "a100")
		}},
		{name: "the node with the label is away", code: answer.NodeNotReady, exit: 5, never: []answer.Code{answer.SelectorNoMatch}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, spec(selects("class", "h100"))))
			label(c, "class", "h100", "a100")
			clustertest.NotReady(c.S.Nodes[0], time.Hour)
		}},
		{name: "pods select what the template of their job does not any more", code: answer.SelectorNoMatch, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Pod = func(_ int, p *corev1.Pod) { selects("class", "b200")(&p.Spec) }
				g.Job = func(job map[string]any) { job["metadata"].(map[string]any)["generation"] = int64(2) }
			}))
		}},
		{name: "pods select another value than their template", code: answer.SelectorNoMatch, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, needs(term("class", corev1.NodeSelectorOpIn, "h100")), func(g *clustertest.Gang) {
				g.Pod = func(_ int, p *corev1.Pod) {
					needed := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.DeepCopy()
					needed.NodeSelectorTerms[0].MatchExpressions[0] = corev1.NodeSelectorRequirement{Key: "klass", Operator: corev1.NodeSelectorOpExists}
					p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: needed}}
				}
			}))
			label(c, "class", "h100", "h100")
		}},
		{name: "a topology label with a slip", code: answer.SelectorNoMatch, exit: 4, wantText: []string{"did you mean the label topology.kubernetes.io/zone"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(selects("topology.kubernetes.io/zones", "z1"))))
			label(c, "topology.kubernetes.io/zone", "z1", "z1")
		}},
	})
}

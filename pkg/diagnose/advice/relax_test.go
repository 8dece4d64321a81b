package advice_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

func taint(c *clustertest.Cluster, i int, key, value string) {
	c.S.Nodes[i].Spec.Taints = []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}}
}

func zones(c *clustertest.Cluster, spread corev1.UnsatisfiableConstraintAction) func(*corev1.PodSpec) {
	label(c, "zone", "z1", "z1", "z2", "z2")
	return func(p *corev1.PodSpec) {
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: spread,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}}
	}
}

func needsNode(key, value string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}}
}

func TestRelax(t *testing.T) {
	classes := func(c *clustertest.Cluster) *clustertest.Cluster {
		c.Nodes(2, 8).Runs("a", 8, "n1")
		label(c, "class", "a", "b")
		return c
	}
	runCases(t, answer.Relax, []testCase{
		{"a selector", func(c *clustertest.Cluster) { classes(c).Add(gangOf(1, 8, selects("class", "a"))) },
			[]string{"Worker.nodeSelector.class=b", "Worker.nodeSelector.class="}},
		{"of the other values the one with the most room", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 2, "n2")
			label(c, "class", "a", "b", "c", "c")
			c.Add(gangOf(1, 6, selects("class", "a")))
		}, []string{"Worker.nodeSelector.class=c", "Worker.nodeSelector.class="}},
		{"a selector that is not in the way", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1")
			label(c, "class", "a")
			c.Add(gangOf(1, 8, selects("class", "a")))
		}, nil},
		{"node affinity", func(c *clustertest.Cluster) {
			classes(c).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.Affinity = needsNode("class", "a") })))
		}, []string{"Worker.nodeAffinity.class=b", "Worker.nodeAffinity=preferred"}},
		{"what the image is built for", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			label(c, "kubernetes.io/arch", "amd64", "arm64")
			c.Add(gangOf(1, 8, selects("kubernetes.io/arch", "amd64")))
		}, nil},
		{"what the image is built for, by affinity", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			label(c, "beta.kubernetes.io/os", "linux", "windows")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.Affinity = needsNode("beta.kubernetes.io/os", "linux") })))
		}, nil},
		{"node affinity, but not what the image is built for", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1")
			label(c, "class", "a", "b", "b")
			label(c, "kubernetes.io/arch", "amd64", "arm64", "arm64")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Affinity = needsNode("class", "a")
				term := &p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
				term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}})
			})))
		}, nil},
		{"node affinity, within what the image is built for", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1")
			label(c, "class", "a", "b", "b")
			label(c, "kubernetes.io/arch", "amd64", "amd64", "arm64")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Affinity = needsNode("class", "a")
				term := &p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
				term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}})
			})))
		}, []string{"Worker.nodeAffinity.class=b", "Worker.nodeAffinity=preferred"}},
		{"a taint", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			taint(c, 1, "it's", "$HOME")
			c.Add(gangOf(1, 8))
		}, []string{"Worker.tolerations=it's=$HOME:NoSchedule"}},
		{"a taint that goes when the node has started", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			taint(c, 1, "acme.io/burn-in", "true")
			label(c, "karpenter.sh/nodepool", "gpu", "gpu")
			c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"startupTaints": []any{map[string]any{"key": "acme.io/burn-in", "effect": "NoSchedule"}}}}}})
			c.Add(gangOf(1, 8))
		}, nil},
		{"a taint of a node that is too small", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Node("n2", 4)
			taint(c, 1, "dedicated", "infra")
			c.Add(gangOf(1, 8))
		}, nil},
		{"one rack", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3")
			label(c, "rack", "r1", "r1", "r2", "r2")
			c.Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "rack") })))
		}, []string{"Worker.podAffinity=preferred"}},
		{"apart", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 4, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") })))
		}, []string{"Worker.podAntiAffinity=preferred"}},
		{"spread", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2")
			c.Add(gangOf(2, 8, spec(zones(c, corev1.DoNotSchedule))))
		}, []string{"Worker.topologySpread=ScheduleAnyway"}},
		{"spread that counts a zone behind a taint", func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			taint(c, 2, "dedicated", "infra")
			taint(c, 3, "dedicated", "infra")
			c.Add(gangOf(2, 8, spec(zones(c, corev1.DoNotSchedule))))
		}, []string{"Worker.topologySpread=nodeTaintsPolicy=Honor", "Worker.topologySpread=ScheduleAnyway", "Worker.tolerations=dedicated=infra:NoSchedule"}},
		{"spread that counts a zone that is not selected", func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			label(c, "class", "a", "a", "b", "b")
			in, ignore := zones(c, corev1.DoNotSchedule), corev1.NodeInclusionPolicyIgnore
			c.Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) {
				in(p)
				p.NodeSelector, p.TopologySpreadConstraints[0].NodeAffinityPolicy = map[string]string{"class": "a"}, &ignore
			})))
		}, []string{"Worker.nodeSelector.class=", "Worker.topologySpread=nodeAffinityPolicy=Honor", "Worker.topologySpread=ScheduleAnyway"}},
		{"spread that is a wish already", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2", "n3")
			c.Add(gangOf(2, 8, spec(zones(c, corev1.ScheduleAnyway))))
		}, nil},
		{"a host port", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 4, spec(func(p *corev1.PodSpec) {
				p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}
			})))
		}, []string{"Worker.hostPort="}},
		{"a port in the network of the host, of pods that do not exist yet", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 4, spec(func(p *corev1.PodSpec) {
				p.HostNetwork, p.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 29500}}
			}), func(g *clustertest.Gang) { g.Missing = 2 }))
		}, []string{"Worker.hostPort="}},
		{"no single one is enough: two", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			label(c, "class", "a", "b")
			taint(c, 1, "dedicated", "infra")
			c.Add(gangOf(1, 8, selects("class", "a")))
		}, []string{"Worker.nodeSelector.class= Worker.tolerations=dedicated=infra:NoSchedule"}},
		{"one is enough: no two", func(c *clustertest.Cluster) {
			classes(c).Node("n3", 8)
			taint(c, 2, "dedicated", "infra")
			c.Add(gangOf(1, 8, selects("class", "a")))
		}, []string{"Worker.nodeSelector.class=b", "Worker.nodeSelector.class="}},
		{"a spread over more domains than there are", func(c *clustertest.Cluster) {
			three := int32(3)
			c.Nodes(4, 8)
			label(c, "zone", "a", "a", "b", "b")
			c.Add(gangOf(4, 8, spec(func(p *corev1.PodSpec) {
				p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, MinDomains: &three, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}}
			})))
		}, []string{"Worker.topologySpread=ScheduleAnyway", "Worker.topologySpread=minDomains=1"}},
		{"three would be needed", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			label(c, "class", "a", "b")
			label(c, "disk", "ssd", "hdd")
			taint(c, 1, "dedicated", "infra")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "a", "disk": "ssd"} })))
		}, nil},
		{"the same rule of several roles", func(c *clustertest.Cluster) {
			want := func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "a"} }
			c.Nodes(4, 8).Runs("a", 8, "n1")
			label(c, "class", "a", "b", "b", "b")
			c.Add(gangOf(1, 8, spec(want), func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 8, Spec: want}, {Name: "PS", Replicas: 1, GPUs: 8, Spec: want}}
			}))
		}, []string{"Chief.nodeSelector.class=b PS.nodeSelector.class=b Worker.nodeSelector.class=b", "Chief.nodeSelector.class= PS.nodeSelector.class= Worker.nodeSelector.class="}},
	})
}

// The rule of a gang object is dropped there, or, where that cannot be changed, described.
func TestRelaxTopology(t *testing.T) {
	racks := func(dialect gang.Dialect, rule map[string]any) *clustertest.Cluster {
		c := clustertest.New().Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3")
		label(c, "rack", "r1", "r1", "r2", "r2")
		return c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
			g.Dialect = dialect
			g.Group = func(u map[string]any) {
				for key, value := range rule {
					u["spec"].(map[string]any)[key] = value
				}
			}
		}))
	}
	tests := map[gang.Dialect]struct {
		rule         map[string]any
		command, how string
	}{
		gang.KAI:    {map[string]any{"topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}}, `-p '[{"op":"remove","path":"/spec/topologyConstraint"}]'`, ""},
		gang.Native: {map[string]any{"schedulingConstraints": map[string]any{"topology": []any{map[string]any{"key": "rack"}}}}, "", "cannot be changed"},
	}
	for dialect, tt := range tests {
		_, found := look(t, racks(dialect, tt.rule), advice.Options{})
		if got := offers(found.Actions, answer.Relax); len(got) != 1 || got[0] != "podGroup.topology=" {
			t.Errorf("%s: got %q", dialect, got)
			continue
		}
		for _, a := range found.Actions {
			if a.Kind == answer.Relax && (!strings.HasSuffix(a.Command, tt.command) || !strings.Contains(a.How, tt.how)) {
				t.Errorf("%s: command %q, how %q", dialect, a.Command, a.How)
			}
		}
	}
}

// What makes a port one of the host, and would help nothing where it stayed, is in the text.
func TestRelaxHostNetwork(t *testing.T) {
	c := clustertest.New().Nodes(1, 8)
	c.Add(gangOf(2, 4, spec(func(p *corev1.PodSpec) {
		p.HostNetwork, p.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 29500}}
	}), func(g *clustertest.Gang) { g.Missing = 2 }))
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		switch {
		case a.Kind == answer.Relax && !strings.Contains(a.Text, "do not require host port 29500, nor for the host's network"):
			t.Errorf("got %s", a.Text)
		case a.Kind == answer.Trim:
			t.Errorf("%s does not help: its pods have the port, too", a.Text)
		}
	}
}

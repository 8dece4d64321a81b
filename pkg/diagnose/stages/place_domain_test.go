package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Members that keep apart, or are spread, by a label of nodes: the sentences are about its domains, and name who is in which.
func TestDomains(t *testing.T) {
	const zone, jobName = corev1.LabelTopologyZone, "training.kubeflow.org/job-name"
	zones := func(c *clustertest.Cluster, nodes int) *clustertest.Cluster {
		c.Nodes(nodes, 8)
		label(c, zone, []string{"a", "a", "b", "b", "c", "c"}[:nodes]...)
		return c
	}
	apart := spec(apartFrom(jobName, "gang", zone))
	spread := func(change func(*corev1.TopologySpreadConstraint)) func(*clustertest.Gang) {
		return spec(func(p *corev1.PodSpec) {
			s := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
			change(&s)
			p.TopologySpreadConstraints = append(p.TopologySpreadConstraints, s)
		})
	}
	asIs := func(*corev1.TopologySpreadConstraint) {}
	counted := pods(func(_ int, p *corev1.Pod) { p.Labels["app"] = "x" })
	check(t, []testCase{
		{name: "apart, and fewer zones than members", code: answer.TooBig, exit: 6, first: `^pod anti-affinity requires 4 zones, one for each worker, and there are 3 \(a, b, c; 48 GPUs are there, 4 requested\)`, build: func(c *clustertest.Cluster) {
			zones(c, 6).Add(gangOf(4, 1, apart))
		}},
		{name: "apart, and a zone is busy", code: answer.Fragmented, exit: 3, first: "^needs 3 workers with 8 GPUs each, each in a zone of its own by pod anti-affinity; 2 of 3 zones have room for one: a, b$",
			wantText: []string{"TFJob research/a holds 16 GPUs on n5, n6"}, build: func(c *clustertest.Cluster) {
				zones(c, 6).Runs("a", 8, "n5", "n6").Add(gangOf(3, 8, apart))
			}},
		{name: "apart, and one has a zone", code: answer.MemberLost, exit: 7, wantText: []string{"pod anti-affinity requires 2 zones, besides those of its members that have a node, one for each worker, and there is 1 .b"}, build: func(c *clustertest.Cluster) {
			zones(c, 4).Add(gangOf(3, 1, apart, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
		}},
		{name: "kept off zones by others", code: answer.Fragmented, exit: 3, first: "^pod anti-affinity keeps it from the room that there is: 2 of 3 members fit with it",
			wantText: []string{`TFJob research/a keeps workers off topology.kubernetes.io/zone=a \(n1, n2\), topology.kubernetes.io/zone=b \(n3, n4\) by pod anti-affinity`}, build: func(c *clustertest.Cluster) {
				o := other("a", 0, "n1", "n3")
				o.Spec = apartFrom(jobName, "gang", zone)
				zones(c, 6).Add(o).Add(gangOf(3, 8))
			}},
		{name: "a spread, and others that count", code: answer.TopologySpread, exit: 3, first: `the spread over topology.kubernetes.io/zone \(maxSkew 1\) \(room for none in a, 2 in b; it counts 3 pods in b, none in a\) keeps it`,
			wantText: []string{"TFJob team/other has 3 pods that the spread counts in b", "TFJob research/a holds 16 GPUs on n1, n2"}, build: func(c *clustertest.Cluster) {
				zones(c, 4).Runs("a", 8, "n1", "n2").Add(clustertest.Gang{Name: "other", Workers: 3, GPUs: 1, Nodes: []string{"n3", "n3", "n4"}, Age: time.Hour, Pod: func(_ int, p *corev1.Pod) { p.Labels["app"] = "x" }}).Add(gangOf(2, 4, spread(asIs), counted))
			}},
		{name: "a spread, and a zone whose cpu is in use, and whose GPUs are not", code: answer.TopologySpread, exit: 3, first: `room for 4 in a, none in b`, wantText: []string{"TFJob research/etl holds 180 cpu on n3, n4"}, build: func(c *clustertest.Cluster) {
			zones(c, 4).Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 2, CPU: "90", Nodes: []string{"n3", "n4"}}).Add(gangOf(4, 4, spread(asIs), counted))
		}},
		{name: "a spread that counts a zone whose nodes it may not use", code: answer.TooBig, exit: 6, first: `\(room for 2 in a, none in b; it may use no node in b\) keeps it`, wantText: []string{"not counted: n3, n4 .taint dedicated=infra"}, build: func(c *clustertest.Cluster) {
			zones(c, 4).Add(gangOf(2, 8, spread(asIs), counted))
			for _, n := range c.S.Nodes[2:] {
				n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
			}
		}},
		{name: "a spread that leaves out such a zone", code: answer.FitsNotPlaced, exit: 5, build: func(c *clustertest.Cluster) {
			honor := corev1.NodeInclusionPolicyHonor
			zones(c, 4).Add(gangOf(2, 8, spread(func(s *corev1.TopologySpreadConstraint) { s.NodeTaintsPolicy = &honor }), counted))
			for _, n := range c.S.Nodes[2:] {
				n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
			}
		}},
		{name: "two spreads, of which one binds", code: answer.TopologySpread, exit: 3, first: `^the spread over topology.kubernetes.io/zone \(maxSkew 1\) \(room for 6 in a, none in b\) keeps it`, build: func(c *clustertest.Cluster) {
			both := func(p *corev1.PodSpec) {
				for _, key := range []string{corev1.LabelHostname, zone} {
					p.TopologySpreadConstraints = append(p.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 2, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{jobName: "gang"}}})
				}
				p.TopologySpreadConstraints[1].MaxSkew = 1
			}
			zones(c, 4).Runs("a", 8, "n3", "n4").Add(gangOf(3, 2, spec(both)))
		}},
		{name: "a spread over more domains than there are", code: answer.TooBig, exit: 6, first: `the spread over topology.kubernetes.io/zone \(maxSkew 1, minDomains 3\) \(room for 8 in a, 8 in b; with 2 of 3 domains each takes 1 at most\) keeps it`, build: func(c *clustertest.Cluster) {
			three := int32(3)
			zones(c, 4).Add(gangOf(4, 2, spread(func(s *corev1.TopologySpreadConstraint) { s.MinDomains = &three }), counted))
		}},
	})
}

// What is so for some roles alone names them, and counts none but their members.
func TestRulesOfRoles(t *testing.T) {
	const zone, roleName = corev1.LabelTopologyZone, "training.kubeflow.org/replica-type"
	withPS := func(change func(*corev1.PodSpec), worker func(*corev1.PodSpec)) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			g.More = []clustertest.Role{{Name: "PS", Replicas: 1}}
			g.Spec = func(p *corev1.PodSpec) {
				if _, gpus := p.Containers[0].Resources.Requests["nvidia.com/gpu"]; gpus {
					worker(p)
				} else {
					change(p)
				}
			}
		}
	}
	asIs := func(*corev1.PodSpec) {}
	workersTogether := func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: zone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{roleName: "worker"}}}}}}
	}
	zones := func(c *clustertest.Cluster) *clustertest.Cluster {
		c.Nodes(4, 8)
		label(c, zone, "a", "a", "b", "b")
		return c
	}
	check(t, []testCase{
		{name: "workers share a zone, and each has room for one", code: answer.TopologyFragmented, exit: 3, first: "^all 2 members of role Worker must share one value of topology.kubernetes.io/zone: a has room for 1, b for 1$", build: func(c *clustertest.Cluster) {
			zones(c).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(gangOf(2, 8, withPS(asIs, workersTogether)))
		}},
		{name: "workers share a zone, and none is large enough", code: answer.TooBig, exit: 6, first: "^all 4 members of role Worker must share one value of topology.kubernetes.io/zone: a has room for 2, b for 2: 3 of 5 members fit$", build: func(c *clustertest.Cluster) {
			zones(c).Add(gangOf(4, 8, withPS(asIs, workersTogether)))
		}},
		{name: "workers share a zone, and one has a node", code: answer.MemberLost, exit: 7,
			wantText: []string{"its other members of role Worker are at topology.kubernetes.io/zone=a, where there is room for 0 of 1; everywhere: b has room for 1"}, build: func(c *clustertest.Cluster) {
				zones(c).Runs("a", 8, "n2").Runs("b", 8, "n3").Add(gangOf(2, 8, withPS(asIs, workersTogether), func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
			}},
		{name: "workers share a zone, and fewer will do", code: answer.TooBig, exit: 6, first: "^all 3 members of role Worker must share one value of topology.kubernetes.io/zone: a has room for 2, b for 2", build: func(c *clustertest.Cluster) {
			zones(c).Add(gangOf(4, 8, withPS(asIs, workersTogether), func(g *clustertest.Gang) { g.Min = 4 }))
		}},
		{name: "a host port of one role", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds host port 2222 on n1, n2, n3, n4 and never ends: a host port of role PS keeps it from the room that there is: 2 of 3 members fit", build: func(c *clustertest.Cluster) {
			port := func(p *corev1.PodSpec) { p.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 2222}} }
			zones(c)
			serves(c, 0, func(p *corev1.Pod) { port(&p.Spec) }, "n1", "n2", "n3", "n4")
			c.Add(gangOf(2, 8, withPS(port, asIs)))
		}},
		{name: "workers that keep away from the server", code: answer.TooBig, exit: 6, first: "^pod anti-affinity to pods with training.kubeflow.org/replica-type=ps .same zone. keeps 2 workers from nodes with room$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			label(c, zone, "a", "a")
			c.Add(gangOf(2, 2, withPS(asIs, apartFrom(roleName, "ps", zone))))
		}},
		{name: "workers that keep away from several", code: answer.TooBig, exit: 6, first: "^pod anti-affinity keeps 2 workers from nodes with room$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			label(c, zone, "a", "a")
			c.Add(gangOf(2, 2, withPS(asIs, func(p *corev1.PodSpec) {
				apartFrom("app", "none", zone)(p)
				terms := p.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				apartFrom(roleName, "ps", zone)(p)
				own := p.Affinity.PodAntiAffinity
				own.RequiredDuringSchedulingIgnoredDuringExecution = append(terms, own.RequiredDuringSchedulingIgnoredDuringExecution...)
			})))
		}},
		{name: "a label for one role", code: answer.SelectorNoMatch, exit: 4, first: "^no node has the label pool=login, required for PS$", build: func(c *clustertest.Cluster) {
			zones(c).Add(gangOf(2, 8, withPS(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "login"} }, asIs)))
		}},
	})
}

// Two gangs each of which has to be where the other one is wait for ever.
func TestAffinityInTurn(t *testing.T) {
	with := func(name, other string) clustertest.Gang {
		return clustertest.Gang{Name: name, Workers: 1, GPUs: 1, NoGroup: true, Spec: func(p *corev1.PodSpec) { p.Affinity = clustertest.Together(other, corev1.LabelHostname) }}
	}
	check(t, []testCase{
		{name: "neither can go first", code: answer.TooBig, exit: 6, first: "there is no such pod on a node: team/other-worker-0, which is such a pod, has to be where this one is", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with("gang", "other")).Add(with("other", "gang"))
		}},
		{name: "the other one can", code: answer.TooBig, exit: 6, not: []string{"neither can go first"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with("gang", "other")).Add(with("other", "third"))
		}},
	})
}

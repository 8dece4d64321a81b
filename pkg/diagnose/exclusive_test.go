package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// annotated has a job with an annotation.
func annotated(key, value string) func(map[string]any) {
	return func(job map[string]any) {
		job["metadata"].(map[string]any)["annotations"] = map[string]any{key: value}
	}
}

const jobKey = "jobset.sigs.k8s.io/job-key"

// keyed gives the pods of a Job what the webhook of JobSet gives them: a key, and the first of them affinity to that key in a rack and anti-affinity to all others.
func keyed(key string) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		p.Labels[jobKey] = key
		if i > 0 {
			return
		}
		term := func(also ...metav1.LabelSelectorRequirement) []corev1.PodAffinityTerm {
			return []corev1.PodAffinityTerm{{TopologyKey: "rack", NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchExpressions: also}}}
		}
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(metav1.LabelSelectorRequirement{Key: jobKey, Operator: metav1.LabelSelectorOpIn, Values: []string{key}})},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(metav1.LabelSelectorRequirement{Key: jobKey, Operator: metav1.LabelSelectorOpExists},
				metav1.LabelSelectorRequirement{Key: jobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{key}})},
		}
	}
}

// Jobs of a JobSet, and replicas of a LeaderWorkerSet, that have a rack each.
func TestExclusiveTopology(t *testing.T) {
	// two Jobs of two pods, of which only the first of each is made; on are the nodes of the first Job, whose pods are all made then
	two := func(on ...string) clustertest.Gang {
		g := waiting(2, 8)
		g.Kind, g.NoGroup, g.Nodes, g.Missing, g.Pod = "JobSet", true, on, 1-min(1, len(on)), keyed("a")
		g.More = []clustertest.Role{{Name: "Other", Replicas: 2, GPUs: 8, Missing: 1, Pod: keyed("b")}}
		g.Job = annotated("alpha.jobset.sigs.k8s.io/exclusive-topology", "rack")
		return g
	}
	of := func(name, kind, key string, nodes ...string) clustertest.Gang {
		return clustertest.Gang{Namespace: "research", Name: name, Kind: kind, NoGroup: true, Workers: len(nodes), GPUs: 8, Nodes: nodes, Pod: func(_ int, p *corev1.Pod) { p.Labels[jobKey] = key }}
	}
	one := func() clustertest.Gang {
		g := two()
		g.More = nil
		return g
	}
	replica := func() clustertest.Gang {
		g := waiting(2, 8)
		g.Kind, g.NoGroup, g.Missing, g.Job = "LeaderWorkerSet", true, 1, annotated("leaderworkerset.sigs.k8s.io/exclusive-topology", "rack")
		return g
	}
	for _, s := range []scenario{
		{name: "a rack each", code: answer.Fits, exit: 3, wantText: []string{"room for all 4 members on n1, n2, n3, n4"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(two())
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
		{name: "room for all in one rack", code: answer.NodesBusy, exit: 5, wantText: []string{
			"Deployment serving/svc holds 8 GPUs on n6 and never ends: the members of each of 2 parts must have a value of rack to themselves", "r1 has room for 2, r2 for 1", "PLACEMENT 2/4"},
			build: func(c *clustertest.Cluster) {
				c.Nodes(6, 8).Serves("svc", 8, "n6").Add(two())
				label(c, "rack", "r1", "r1", "r1", "r1", "r2", "r2")
			}},
		{name: "one rack, and it takes two", code: answer.TooBig, exit: 6, wantText: []string{"each of 2 parts must have a value of rack to itself, and there is 1"}, never: []answer.ActionKind{answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(two())
			label(c, "rack", "r1", "r1", "r1", "r1")
		}},
		{name: "one rack, and the first Job has it", code: answer.TooBig, exit: 6, notText: []string{"was lost"}, never: []answer.ActionKind{answer.Reshape, answer.Fewer},
			wantText: []string{"each of 2 parts must have a value of rack to itself, and there is 1"}, build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8).Add(two("n1", "n2"))
				label(c, "rack", "r1", "r1", "r1", "r1")
			}},
		{name: "the other rack is too small", code: answer.TooBig, exit: 6, notText: []string{"was lost"},
			wantText: []string{"all 2 members with job-name=gang-other-0 must have a value of rack to themselves: r2 has room for 1"}, build: func(c *clustertest.Cluster) {
				c.Nodes(5, 8).Add(two("n1", "n2"))
				label(c, "rack", "r1", "r1", "r1", "r1", "r2")
			}},
		{name: "another JobSet has the rack", code: answer.Fragmented, exit: 3, wantText: []string{"pod anti-affinity", "research/busy"}, notText: []string{"a node of its own"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(of("busy", "JobSet", "z", "n1")).Add(one())
			label(c, "rack", "r1", "r1", "r1", "r2")
		}},
		{name: "a job of another kind does not matter", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("busy", 8, "n1").Add(one())
			label(c, "rack", "r1", "r1", "r1", "r2")
		}},
		{name: "a replica of a LeaderWorkerSet", code: answer.BelowQuorum, exit: 4, also: []answer.Code{answer.TopologyFragmented}, wantText: []string{"all 2 members must have a value of rack to themselves: r1 has room for 1, r2 for 1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Serves("svc", 8, "n2").Runs("busy", 8, "n4").Add(replica())
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
		{name: "a replica whose leader is where too little is free", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"delete pod gang-0, which keeps the others in rack=r1: all of them are made again, and there is room for all elsewhere", "kubectl -n team delete pod gang-0"}, build: func(c *clustertest.Cluster) {
			g := replica()
			g.Missing, g.Nodes, g.Pod = 0, []string{"n1"}, func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Spec.NodeSelector = map[string]string{"rack": "r1"}
				}
			}
			c.Nodes(4, 8).Runs("busy", 8, "n2").Add(g)
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

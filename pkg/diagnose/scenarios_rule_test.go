package diagnose

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// young is a gang that the scheduler has not had the time to place.
func young(g *clustertest.Gang) { g.Age = 20 * time.Second }

// spread is a required topology spread of the gang over the values of a label of nodes.
func spread(key string, change func(*corev1.TopologySpreadConstraint)) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		constraint := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}
		if change != nil {
			change(&constraint)
		}
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
	}
}

// requiredNodes is a required node affinity with one expression.
func requiredNodes(key string, operator corev1.NodeSelectorOperator, values ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}}}}}
}

func ruleScenarios() []scenario {
	return []scenario{
		{name: "a queue that does not exist, on a cluster that is busy", code: answer.QueueNotFound, exit: 4, wantText: []string{"use queue vision, and then it waits: 0 of 16 GPUs free", "use queue vision, and add 2 nodes like n1"}, build: func(c *clustertest.Cluster) {
			c.Queue("vision", "Open", nil)
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Volcano = "visoin" }))
		}},
		{name: "a minimum of a LimitRange, in two roles", code: answer.LimitRange, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"request 64 cpu in each (worker and chief|chief and worker)"}, build: func(c *clustertest.Cluster) {
			c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "floor"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: clustertest.List("cpu", "64")}}}})
			c.Nodes(3, 8).Add(with(with(waiting(2, 8), func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, Missing: 1}} }), none))
		}},
		{name: "a preference is no rule", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), young), spec(func(p *corev1.PodSpec) {
				term := requiredNodes("class", corev1.NodeSelectorOpIn, "h100").NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
				p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: term}}}}
			})))
		}},
		{name: "a taint that only discourages", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), young))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		{name: "a spread that schedules anyway", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), young), spec(spread("zone", func(s *corev1.TopologySpreadConstraint) { s.WhenUnsatisfiable = corev1.ScheduleAnyway }))))
			label(c, "zone", "z1", "z1")
		}},
		{name: "excluded nodes are free, the others busy", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Relax}, wantText: []string{"zone", "research/a"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(with(waiting(1, 8), spec(func(p *corev1.PodSpec) { p.Affinity = requiredNodes("zone", corev1.NodeSelectorOpNotIn, "z2") })))
			label(c, "zone", "z1", "z2")
		}},
		{name: "an init container requests more than the others", code: answer.TooBig, exit: 6, wantText: []string{"120"}, offers: []answer.ActionKind{answer.Trim}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(1, 8), spec(func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "unpack", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "120")}}}
			})))
		}},
		{name: "a role that is not needed has no place", code: answer.Fits, exit: 3, notText: []string{"TOO_BIG"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Min, g.Age = 2, 20*time.Second
				g.More = []clustertest.Role{{Name: "Evaluator", Replicas: 1, GPUs: 16}}
			}))
		}},
	}
}

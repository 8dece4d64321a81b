package agreement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// placeRules tie a pod to nodes, whatever else runs.
func (g *generator) placeRules(p *corev1.Pod) {
	if g.once(5) {
		p.Spec.NodeSelector = pick(g,
			map[string]string{poolLabel: pick(g, "a", "b")},
			map[string]string{zoneLabel: fmt.Sprintf("z%d", g.IntN(3))},
			map[string]string{poolLabel: "a", rackLabel: fmt.Sprintf("r%d", g.IntN(4))},
		)
	}
	if g.once(6) {
		affinityOf(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{g.nodeTerm()},
		}}
	}
	if g.once(20) { // a preference rules nothing out
		affinityOf(p).NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 50, Preference: g.nodeTerm()},
		}}
	}
	for range pick(g, 0, 0, 1, 2) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, pick(g,
			corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "team", Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists},
		))
	}
	if g.once(12) {
		hostPort(p, pick(g, int32(8080), 9090))
	}
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	return pick(g,
		expression(zoneLabel, corev1.NodeSelectorOpIn, "z0", "z1"),
		expression(zoneLabel, corev1.NodeSelectorOpNotIn, "z0"),
		expression(rackLabel, corev1.NodeSelectorOpExists),
		expression("gen", corev1.NodeSelectorOpGt, "1"),
		corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{g.s.Nodes[0].Name},
		}}},
	)
}

// podAffinityRule ties a pod to other pods, or keeps it from them. It returns true if where one member goes may then decide where
// others can.
func (g *generator) podAffinityRule(p *corev1.Pod, gang, role string, count int) (trap bool) {
	key := pick(g, corev1.LabelHostname, zoneLabel, rackLabel)
	about := g.someSelector(gang, role)
	own := about.MatchLabels[gangLabel] != "" && count > 1
	kind := g.IntN(8)
	trap = kind >= 6 && count > 1 || own && (kind >= 3 || key != corev1.LabelHostname)
	switch {
	case trap && g.o.NoTraps:
		return false
	case kind < 3:
		keepApart(p, key, about)
	case kind < 6:
		keepTogether(p, key, about)
	default:
		g.spread(p, key, gang, role)
	}
	return trap
}

func (g *generator) spread(p *corev1.Pod, key, gang, role string) {
	c := corev1.TopologySpreadConstraint{
		TopologyKey: key, MaxSkew: int32(g.between(1, 2)), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.someSelector(gang, role),
	}
	if g.once(4) {
		c.MinDomains = new(int32(g.between(1, 3)))
	}
	if g.once(4) {
		c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
	}
	if g.once(4) {
		c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
	}
	if g.once(6) && c.LabelSelector.MatchLabels[roleLabel] == "" {
		c.MatchLabelKeys = []string{roleLabel}
	}
	if g.once(6) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
		c.MinDomains = nil
	}
	twice := func(o corev1.TopologySpreadConstraint) bool {
		return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
	}
	if !slices.ContainsFunc(p.Spec.TopologySpreadConstraints, twice) { // Kubernetes takes one of a kind
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

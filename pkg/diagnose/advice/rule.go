package advice

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
)

// rule is something that a pod spec requests and could do without, or the reverse.
type rule struct {
	// key and value are the stable form of the change, text is the same for readers.
	key, text string
	value     any
	edit      func(*corev1.PodSpec)
}

// rules are those that a spec states.
func rules(spec corev1.PodSpec) []rule {
	var all []rule
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if noderule.Platform(key) {
			continue
		}
		all = append(all, rule{key: "nodeSelector." + key, value: "", text: dropped(key, spec.NodeSelector[key]),
			edit: func(p *corev1.PodSpec) { delete(p.NodeSelector, key) }})
	}
	all = append(all, affinities(spec.Affinity)...)
	all = append(all, inclusions(spec.TopologySpreadConstraints)...)
	if slices.ContainsFunc(spec.TopologySpreadConstraints, must) {
		all = append(all, rule{key: "topologySpread", value: "ScheduleAnyway", text: "make the topology spread a preference (ScheduleAnyway)",
			edit: func(p *corev1.PodSpec) {
				for i := range p.TopologySpreadConstraints {
					p.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
				}
			}})
	}
	if counts := func(t corev1.TopologySpreadConstraint) bool { return must(t) && t.MinDomains != nil }; slices.ContainsFunc(spec.TopologySpreadConstraints, counts) {
		all = append(all, rule{key: "topologySpread", value: "minDomains=1", text: "let the topology spread count the domains that there are alone (no minDomains)",
			edit: func(p *corev1.PodSpec) {
				for i := range p.TopologySpreadConstraints {
					if t := &p.TopologySpreadConstraints[i]; counts(*t) {
						t.MinDomains = nil
					}
				}
			}})
	}
	return append(all, hostPorts(spec)...)
}

// dropped is the text of a label of nodes that is not required any more.
func dropped(key, value string) string {
	return fmt.Sprintf("do not require nodes with %s=%s", key, value)
}

// preferredNodes is the text of a node affinity that is not required any more.
const preferredNodes = "make the node affinity preferred instead of required"

// inclusions are the rules that a spread counts domains of whose nodes a pod may use none: they stay behind, and hold the others back.
func inclusions(constraints []corev1.TopologySpreadConstraint) (all []rule) {
	honor := corev1.NodeInclusionPolicyHonor
	add := func(name, which string, of func(*corev1.TopologySpreadConstraint) **corev1.NodeInclusionPolicy, unset bool) {
		counts := func(t corev1.TopologySpreadConstraint) bool {
			policy := *of(&t)
			return must(t) && (policy == nil && unset || policy != nil && *policy == corev1.NodeInclusionPolicyIgnore)
		}
		if !slices.ContainsFunc(constraints, counts) {
			return
		}
		all = append(all, rule{key: "topologySpread", value: name + "=Honor", text: fmt.Sprintf("leave nodes %s out of the topology spread (%s Honor)", which, name), edit: func(p *corev1.PodSpec) {
			for i := range p.TopologySpreadConstraints {
				if t := &p.TopologySpreadConstraints[i]; counts(*t) {
					*of(t) = &honor
				}
			}
		}})
	}
	add("nodeTaintsPolicy", "whose taints it does not tolerate", func(t *corev1.TopologySpreadConstraint) **corev1.NodeInclusionPolicy { return &t.NodeTaintsPolicy }, true)
	add("nodeAffinityPolicy", "that it does not select", func(t *corev1.TopologySpreadConstraint) **corev1.NodeInclusionPolicy { return &t.NodeAffinityPolicy }, false)
	return all
}

func must(t corev1.TopologySpreadConstraint) bool {
	return t.WhenUnsatisfiable == corev1.DoNotSchedule
}

// affinities make required terms preferred ones.
func affinities(a *corev1.Affinity) []rule {
	if a == nil {
		return nil
	}
	var all []rule
	if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil && !onlyPlatforms(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution) {
		all = append(all, rule{key: "nodeAffinity", value: "preferred", text: preferredNodes, edit: preferNodes})
	}
	if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		key := a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
		all = append(all, rule{key: "podAffinity", value: "preferred", text: fmt.Sprintf("make the pod affinity (%s) preferred instead of required", key), edit: func(p *corev1.PodSpec) {
			n := p.Affinity.PodAffinity
			n.PreferredDuringSchedulingIgnoredDuringExecution = asPreferred(n.PreferredDuringSchedulingIgnoredDuringExecution, n.RequiredDuringSchedulingIgnoredDuringExecution)
			n.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}})
	}
	if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		all = append(all, rule{key: "podAntiAffinity", value: "preferred", text: "make the pod anti-affinity preferred instead of required", edit: func(p *corev1.PodSpec) {
			n := p.Affinity.PodAntiAffinity
			n.PreferredDuringSchedulingIgnoredDuringExecution = asPreferred(n.PreferredDuringSchedulingIgnoredDuringExecution, n.RequiredDuringSchedulingIgnoredDuringExecution)
			n.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}})
	}
	return all
}

// preferNodes makes a required node affinity a preferred one, all but what the image is built for.
func preferNodes(p *corev1.PodSpec) {
	n := p.Affinity.NodeAffinity
	terms := n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for _, term := range terms {
		n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: 100, Preference: term})
	}
	n.RequiredDuringSchedulingIgnoredDuringExecution = nil
	if kept := platforms(terms); len(kept) > 0 {
		n.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: kept}
	}
}

// platforms are the terms, which are alternatives, with what the image is built for alone; none if one of them has none of that.
func platforms(terms []corev1.NodeSelectorTerm) (kept []corev1.NodeSelectorTerm) {
	for _, term := range terms {
		of := slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(e corev1.NodeSelectorRequirement) bool { return !noderule.Platform(e.Key) })
		if len(of) == 0 {
			return nil
		}
		kept = append(kept, corev1.NodeSelectorTerm{MatchExpressions: of})
	}
	return kept
}

// onlyPlatforms reports whether a node affinity requires nothing but what the image is built for.
func onlyPlatforms(n *corev1.NodeSelector) bool {
	return !slices.ContainsFunc(n.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return len(term.MatchFields) > 0 || len(term.MatchExpressions) == 0 || slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return !noderule.Platform(e.Key) })
	})
}

// asPreferred adds terms to those that are preferred, as strongly as can be.
func asPreferred(preferred []corev1.WeightedPodAffinityTerm, musts []corev1.PodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	for _, term := range musts {
		preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: term})
	}
	return preferred
}

// hostPorts is the rule that a spec needs a port of the host, if its pods have one.
func hostPorts(spec corev1.PodSpec) []rule {
	pod := spec.DeepCopy()
	view.DefaultHostPorts(pod)
	for _, c := range pod.Containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				text := fmt.Sprintf("do not require host port %d", port.HostPort)
				if spec.HostNetwork {
					text += ", nor for the host's network"
				}
				return []rule{{key: "hostPort", value: "", text: text, edit: dropHostPorts}}
			}
		}
	}
	return nil
}

func dropHostPorts(p *corev1.PodSpec) {
	p.HostNetwork = false // every port of a pod in the host's network is one of the host
	for i := range p.Containers {
		for j := range p.Containers[i].Ports {
			p.Containers[i].Ports[j].HostPort = 0
		}
	}
}

// toleration is the rule that a taint is not tolerated, the other way round.
func toleration(t corev1.Taint) rule {
	text := fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
	return rule{key: "tolerations", value: text, text: "tolerate the taint " + text + phrase.IfOwnerAgrees, edit: func(p *corev1.PodSpec) {
		p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}}
}

package advice

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
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
		all = append(all, rule{key: "nodeSelector." + key, value: "", text: fmt.Sprintf("do not require nodes with %s=%s", key, spec.NodeSelector[key]),
			edit: func(p *corev1.PodSpec) { delete(p.NodeSelector, key) }})
	}
	all = append(all, affinities(spec.Affinity)...)
	if slices.ContainsFunc(spec.TopologySpreadConstraints, must) {
		all = append(all, rule{key: "topologySpread", value: "ScheduleAnyway", text: "make the topology spread a preference (ScheduleAnyway)",
			edit: func(p *corev1.PodSpec) {
				for i := range p.TopologySpreadConstraints {
					p.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
				}
			}})
	}
	return append(all, hostPorts(spec)...)
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
	if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		all = append(all, rule{key: "nodeAffinity", value: "preferred", text: "make the node affinity preferred instead of required", edit: func(p *corev1.PodSpec) {
			n := p.Affinity.NodeAffinity
			for _, term := range n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: 100, Preference: term})
			}
			n.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}})
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
	return rule{key: "tolerations", value: text, text: "tolerate the taint " + text + ", if its owner agrees", edit: func(p *corev1.PodSpec) {
		p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}}
}

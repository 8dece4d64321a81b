package phrase

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
)

// RuleCode is the code for a gang that a rule keeps from the room that there is: one about what shares a node or a domain, or about where data and devices
// are. ok is false for all other constraints.
func RuleCode(rule placement.Constraint) (code answer.Code, ok bool) {
	switch rule {
	case placement.PodAffinity:
		return answer.TopologyFragmented, true
	case placement.TopologySpread:
		return answer.TopologySpread, true
	case placement.VolumeZone, placement.VolumeLimits:
		return answer.VolumeZone, true
	case placement.DRADevices:
		return answer.DRAUnallocatable, true
	case placement.HostPort, placement.PodAntiAffinity:
		return answer.Fragmented, true
	}
	return "", false
}

// Rule is what users call a rule that has a code, as a pod has it.
func Rule(rule placement.Constraint, pod *corev1.Pod) string {
	switch rule {
	case placement.PodAffinity:
		return "required pod affinity"
	case placement.PodAntiAffinity:
		return "pod anti-affinity"
	case placement.TopologySpread:
		return Spread(pod)
	case placement.VolumeZone:
		return "the place of its volumes"
	case placement.VolumeLimits:
		return "the number of volumes that a node can attach"
	case placement.HostPort:
		return "a host port"
	case placement.DRADevices:
		return "its claim of devices"
	default:
		return string(rule)
	}
}

// Sharing names the rule that members share a domain of a node label.
func Sharing(key string) string { return "the rule that members share one " + Domain(key) }

// Spread names the topology spread constraints of a pod that must be met.
func Spread(pod *corev1.Pod) string { return SpreadOver(pod.Spec.TopologySpreadConstraints...) }

// SpreadOver names those of some topology spread constraints that must be met.
func SpreadOver(constraints ...corev1.TopologySpreadConstraint) string {
	var parts []string
	for _, s := range constraints {
		if s.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		least := ""
		if s.MinDomains != nil {
			least = fmt.Sprintf(", minDomains %d", *s.MinDomains)
		}
		parts = append(parts, fmt.Sprintf("%s (maxSkew %d%s)", s.TopologyKey, s.MaxSkew, least))
	}
	if len(parts) == 0 {
		return "a topology spread constraint"
	}
	return "the spread over " + Names(parts)
}

// Ruled is the sentence for a gang of which fit members, of all, have room with a rule, and as many as it needs without. what names the rule.
func Ruled(what string, g placement.Gang, fit, all int32) string {
	without := "all"
	if need := g.MinMember; need > 0 && need < g.Total() {
		without = fmt.Sprintf("at least %d", need)
	}
	return fmt.Sprintf("%s keeps it from the room that there is: %d of %d members fit with it, %s without", what, fit, all, without)
}

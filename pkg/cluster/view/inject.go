package view

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// inject puts into the spec of a pod that is to be made what is injected into pods like it. What the spec states itself of a container's resources stays.
func inject(spec, injected *corev1.PodSpec) {
	if injected == nil {
		return
	}
	injected = injected.DeepCopy()
	if len(injected.NodeSelector) > 0 {
		selector := maps.Clone(spec.NodeSelector)
		if selector == nil {
			selector = map[string]string{}
		}
		maps.Copy(selector, injected.NodeSelector)
		spec.NodeSelector = selector
	}
	spec.Affinity = withAffinity(spec.Affinity, injected.Affinity)
	spec.Tolerations = append(spec.Tolerations, injected.Tolerations...)
	spec.Containers = withContainers(spec.Containers, injected.Containers)
	spec.InitContainers = withContainers(spec.InitContainers, injected.InitContainers)
	spec.ResourceClaims = append(spec.ResourceClaims, lackedBy(injected.ResourceClaims, spec.ResourceClaims, sameClaim)...)
	spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, lackedBy(injected.TopologySpreadConstraints, spec.TopologySpreadConstraints, sameSpread)...)
	if spec.RuntimeClassName == nil {
		spec.RuntimeClassName = injected.RuntimeClassName
	}
	if spec.Overhead == nil {
		spec.Overhead = injected.Overhead
	}
	if spec.PriorityClassName == "" && injected.PriorityClassName != "" {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = injected.PriorityClassName, injected.Priority, injected.PreemptionPolicy
	}
}

// withContainers are containers with those that are injected, and with the resources that are injected into them.
func withContainers(own, injected []corev1.Container) []corev1.Container {
	for _, c := range injected {
		at := slices.IndexFunc(own, func(x corev1.Container) bool { return x.Name == c.Name })
		if at < 0 {
			own = append(own, c)
			continue
		}
		r := &own[at].Resources
		for name, q := range c.Resources.Requests {
			if _, limited := r.Limits[name]; limited {
				continue
			}
			if _, requested := r.Requests[name]; requested {
				continue
			}
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = q
		}
	}
	return own
}

// withAffinity is an affinity with what is injected: both hold.
func withAffinity(own, injected *corev1.Affinity) *corev1.Affinity {
	if injected == nil {
		return own
	}
	if own == nil {
		own = &corev1.Affinity{}
	}
	if more := requiredTerms(injected.NodeAffinity); len(more) > 0 {
		if own.NodeAffinity == nil {
			own.NodeAffinity = &corev1.NodeAffinity{}
		}
		own.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: bothHold(requiredTerms(own.NodeAffinity), more)}
	}
	if more := injected.PodAffinity; more != nil {
		if own.PodAffinity == nil {
			own.PodAffinity = &corev1.PodAffinity{}
		}
		terms := &own.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*terms = append(*terms, more.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if more := injected.PodAntiAffinity; more != nil {
		if own.PodAntiAffinity == nil {
			own.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		terms := &own.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*terms = append(*terms, more.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return own
}

// mostTerms is how many terms two affinities together are written out to: users write both.
const mostTerms = 256

// bothHold are the terms for nodes that match one term of each of two affinities. Of more than [mostTerms] only those that are injected are left.
func bothHold(own, injected []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	if len(own) == 0 || len(own)*len(injected) > mostTerms {
		return injected
	}
	var all []corev1.NodeSelectorTerm
	for _, a := range own {
		for _, b := range injected {
			all = append(all, corev1.NodeSelectorTerm{
				MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions), MatchFields: slices.Concat(a.MatchFields, b.MatchFields),
			})
		}
	}
	return all
}

package view

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// selectedLabels are the keys of the labels by which rules tell the members of a gang apart: those that a rule of a member, or the
// anti-affinity of a pod that has a node, selects by.
func (w *View) selectedLabels(g *gang.Gang) map[string]bool {
	keys := map[string]bool{}
	for _, pod := range g.Pods() {
		ruleKeys(pod.Spec, keys)
	}
	for _, pod := range w.Snap.Pods {
		if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && pod.Spec.NodeName != "" {
			termKeys(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, keys)
		}
	}
	return keys
}

// ruleKeys adds the keys that the rules of a pod select by.
func ruleKeys(spec corev1.PodSpec, keys map[string]bool) {
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			termKeys(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, keys)
		}
		if a.PodAntiAffinity != nil {
			termKeys(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, keys)
		}
	}
	for _, c := range spec.TopologySpreadConstraints {
		selectorKeys(c.LabelSelector, keys)
		for _, key := range c.MatchLabelKeys {
			keys[key] = true
		}
	}
}

func termKeys(terms []corev1.PodAffinityTerm, keys map[string]bool) {
	for _, t := range terms {
		selectorKeys(t.LabelSelector, keys)
		for _, list := range [][]string{t.MatchLabelKeys, t.MismatchLabelKeys} {
			for _, key := range list {
				keys[key] = true
			}
		}
	}
}

func selectorKeys(s *metav1.LabelSelector, keys map[string]bool) {
	if s == nil {
		return
	}
	for key := range s.MatchLabels {
		keys[key] = true
	}
	for _, e := range s.MatchExpressions {
		keys[e.Key] = true
	}
}

package view

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mergeLabelKeys writes matchLabelKeys and mismatchLabelKeys of a pod into the label selectors alongside them, with the values of its own labels. The API server
// does that to pods, not to their templates (MatchLabelKeysInPodAffinity), and the scheduler reads the selectors alone. Keys of topology spread constraints
// the simulation reads itself.
func mergeLabelKeys(pod *corev1.Pod) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	preferred := func(terms []corev1.WeightedPodAffinityTerm) {
		for i := range terms {
			mergeKeysOfTerm(&terms[i].PodAffinityTerm, pod.Labels)
		}
	}
	required := func(terms []corev1.PodAffinityTerm) {
		for i := range terms {
			mergeKeysOfTerm(&terms[i], pod.Labels)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		preferred(a.PreferredDuringSchedulingIgnoredDuringExecution)
		required(a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		preferred(a.PreferredDuringSchedulingIgnoredDuringExecution)
		required(a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
}

// mergeKeysOfTerm leaves out keys that the pod does not have. A term without a selector selects no pods, whatever its keys are.
func mergeKeysOfTerm(term *corev1.PodAffinityTerm, own map[string]string) {
	if term.LabelSelector == nil {
		return
	}
	merge := func(keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, ok := own[key]; ok {
				term.LabelSelector.MatchExpressions = append(term.LabelSelector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	merge(term.MatchLabelKeys, metav1.LabelSelectorOpIn)
	merge(term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
}

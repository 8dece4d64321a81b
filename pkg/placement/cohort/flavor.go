package cohort

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// flavorSpec is the spec of a ResourceFlavor.
type flavorSpec struct {
	NodeLabels  map[string]string   `json:"nodeLabels"`
	NodeTaints  []corev1.Taint      `json:"nodeTaints"`
	Tolerations []corev1.Toleration `json:"tolerations"`
}

// specOf reads the spec of a flavor. One that was not seen has none: any pod may use it.
func specOf(flavor *unstructured.Unstructured) flavorSpec {
	var spec flavorSpec
	raw, err := json.Marshal(flavor.Object["spec"])
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	if err != nil {
		return flavorSpec{} // the API server would not have accepted it
	}
	return spec
}

// Injected is what Kueue writes into pods that it admits.
type Injected struct {
	// NodeLabels are those that the pods select.
	NodeLabels  map[string]string
	Tolerations []corev1.Toleration
}

// Injected is what pods get that are admitted to some flavors.
func (t *Tree) Injected(flavors ...string) Injected {
	all := Injected{NodeLabels: map[string]string{}}
	for _, flavor := range flavors {
		spec := t.flavors[flavor]
		maps.Copy(all.NodeLabels, spec.NodeLabels)
		all.Tolerations = append(all.Tolerations, spec.Tolerations...)
	}
	return all
}

// suits reports whether a pod may use a flavor. Its node selectors count only for keys: the labels in which the flavors of the
// resource group differ.
func (t *Tree) suits(pod corev1.PodSpec, flavor string, keys map[string]bool) bool {
	spec := t.flavors[flavor]
	tolerated := slices.Concat(pod.Tolerations, spec.Tolerations)
	_, untolerated := v1helper.FindMatchingUntoleratedTaint(klog.Background(), spec.NodeTaints, tolerated, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, false)
	if untolerated {
		return false
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: narrowed(pod, keys)}).Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: spec.NodeLabels}})
	return err == nil && matches
}

// keys are the node labels of several flavors.
func (t *Tree) keys(flavors []string) map[string]bool {
	keys := map[string]bool{}
	for _, flavor := range flavors {
		for key := range t.flavors[flavor].NodeLabels {
			keys[key] = true
		}
	}
	return keys
}

// narrowed is a pod with only those of its node selectors that select labels with some keys.
func narrowed(pod corev1.PodSpec, keys map[string]bool) corev1.PodSpec {
	out := corev1.PodSpec{NodeSelector: map[string]string{}}
	for key, value := range pod.NodeSelector {
		if keys[key] {
			out.NodeSelector[key] = value
		}
	}
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return out
	}
	selector := &corev1.NodeSelector{}
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		kept := slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(e corev1.NodeSelectorRequirement) bool { return !keys[e.Key] })
		if len(kept) == 0 {
			return out // terms are alternatives, and this one requires nothing that counts
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: kept})
	}
	out.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	return out
}

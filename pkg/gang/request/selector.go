package request

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SelectorTerms is how many labels and values a selector compares with; 0 for none.
func SelectorTerms(selector *metav1.LabelSelector) int {
	if selector == nil {
		return 0
	}
	n := len(selector.MatchLabels)
	for i := range selector.MatchExpressions {
		n += 1 + len(selector.MatchExpressions[i].Values)
	}
	return n
}

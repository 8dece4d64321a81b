package disruption

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func budget(name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
}

func labelled(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

// Which budgets count is the same whatever order they are in: the first by name, of which those are left out that are too large.
func TestCounting(t *testing.T) {
	large := map[string]string{}
	for i := range maxTerms + 1 {
		large[fmt.Sprint("k", i)] = "v"
	}
	written := []*policyv1.PodDisruptionBudget{budget("a", labelled(large)), budget("none", nil), budget("unreadable", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Near"}}})}
	for i := range maxBudgets {
		written = append(written, budget(fmt.Sprintf("b%03d", maxBudgets-1-i), labelled(map[string]string{"app": "web"})))
	}
	counting, more := Counting(written)
	if len(counting) != maxBudgets-1 || counting[0].Name != "b000" || counting[len(counting)-1].Name != "b098" || !more {
		t.Errorf("%d budgets count, from %s on, and there are more: %v", len(counting), counting[0].Name, more)
	}
	if counting, more := Counting(written[1:3]); len(counting) > 0 || more {
		t.Errorf("budgets that cover no pod: %d count, and there are more: %v", len(counting), more)
	}
}

func TestCovers(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: map[string]string{"app": "web"}}}
	known := budget("known", labelled(map[string]string{"app": "web"}))
	known.Status.DisruptedPods = map[string]metav1.Time{"web-0": {}}
	known.Status.DisruptionsAllowed = -1
	all, _ := Counting([]*policyv1.PodDisruptionBudget{budget("all", &metav1.LabelSelector{}), budget("db", labelled(map[string]string{"app": "db"})), known, budget("web", labelled(map[string]string{"app": "web"}))})
	for i, want := range []struct{ covers, selectsAll bool }{{true, true}, {false, false}, {false, false}, {true, false}} {
		if b := all[i]; b.Covers(web) != want.covers || b.SelectsAll() != want.selectsAll || b.Allows() != 0 {
			t.Errorf("%s: covers %v, selects all %v, allows %d", b.Name, b.Covers(web), b.SelectsAll(), b.Allows())
		}
	}
}

package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// A pod that does not exist yet has what its PriorityClass gives it, as admission would write it.
func TestPriorityOfVirtualPods(t *testing.T) {
	never, lower := corev1.PreemptNever, corev1.PreemptLowerPriority
	w := New(&snapshot.Snapshot{PriorityClasses: []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "eval"}, Value: 1000, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Value: 7, GlobalDefault: true},
	}})
	for _, c := range []struct {
		class    string
		own      *corev1.PreemptionPolicy
		name     string
		priority int32
		policy   *corev1.PreemptionPolicy
	}{{"eval", nil, "eval", 1000, &never}, {"eval", &lower, "eval", 1000, &lower}, {"", nil, "default", 7, nil}} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: c.class, PreemptionPolicy: c.own}}
		w.fillIn(pod)
		if got := pod.Spec; got.PriorityClassName != c.name || got.Priority == nil || *got.Priority != c.priority || (got.PreemptionPolicy == nil) != (c.policy == nil) || c.policy != nil && *got.PreemptionPolicy != *c.policy {
			t.Errorf("class %q: %+v", c.class, got)
		}
	}
}

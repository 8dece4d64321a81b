package gang

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestTermsOf(t *testing.T) {
	pod := func(priority int32, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Priority: ptr.To(priority)}}
		for _, f := range change {
			f(p)
		}
		return p
	}
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }
	never := func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }
	preempts := func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority) }
	for name, tt := range map[string]struct {
		members []*corev1.Pod
		want    Terms
	}{
		"no members":                    {nil, Terms{}},
		"no priority":                   {[]*corev1.Pod{{}}, Terms{}},
		"alike":                         {[]*corev1.Pod{pod(5, preempts), pod(5)}, Terms{Priority: 5}},
		"one that is urgent lifts none": {[]*corev1.Pod{pod(1000), pod(-3), pod(7)}, Terms{Priority: -3}},
		"a gated one does not count":    {[]*corev1.Pod{pod(1, gated), pod(9), pod(2, gated, never), pod(8)}, Terms{Priority: 8}},
		"all are gated":                 {[]*corev1.Pod{pod(9, gated), pod(4, gated)}, Terms{Priority: 4}},
		"one may not preempt":           {[]*corev1.Pod{pod(5, preempts), pod(9, never)}, Terms{Priority: 5, Policy: corev1.PreemptNever}},
	} {
		for range 2 {
			if got := TermsOf(slices.Values(tt.members)); got != tt.want {
				t.Errorf("%s: got %v, want %v", name, got, tt.want)
			}
			slices.Reverse(tt.members)
		}
	}
}

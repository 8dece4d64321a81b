package agreement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// podWithReason is a pod whose PodScheduled condition has this reason and message; none without a reason.
func podWithReason(node, reason, message string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Spec.NodeName = node
	if reason != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
	}
	return p
}

func TestReadOutcome(t *testing.T) {
	bound, refused := podWithReason("n1", "", ""), podWithReason("", corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 Insufficient cpu.")
	waits, gated := podWithReason("", waiting, "1/2 pods exist"), podWithReason("", corev1.PodReasonSchedulingGated, "held")
	tests := []struct {
		name  string
		pods  []*corev1.Pod
		min   int32
		want  Outcome
		final bool
	}{
		{"all bound", []*corev1.Pod{bound, bound}, 2, Outcome{Members: 2, Bound: 2}, true},
		{"none bound", []*corev1.Pod{refused, refused}, 2, Outcome{Members: 2, Refused: 2}, true},
		{"not looked at", []*corev1.Pod{refused, gated}, 2, Outcome{Members: 2, Refused: 1}, false},
		{"enough bound", []*corev1.Pod{bound, refused}, 1, Outcome{Members: 2, Bound: 1, Refused: 1}, true},
		{"a part that is of no use", []*corev1.Pod{bound, refused}, 2, Outcome{Members: 2, Bound: 1, Refused: 1}, false},
		{"cannot be tried", []*corev1.Pod{waits}, 2, Outcome{Members: 1, Waiting: 1}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := ReadOutcome(tt.pods)
			if w.Members != tt.want.Members || w.Bound != tt.want.Bound || w.Refused != tt.want.Refused || w.Waiting != tt.want.Waiting {
				t.Errorf("outcome %+v, want %+v", w, tt.want)
			}
			if w.Final(tt.min) != tt.final {
				t.Errorf("final: %t", w.Final(tt.min))
			}
		})
	}
}

func TestMessagesAreTakenOnceEach(t *testing.T) {
	a, b := podWithReason("", corev1.PodReasonUnschedulable, "0/3 nodes are available: 1 Too many pods, 2 node(s) were unschedulable."), podWithReason("", corev1.PodReasonUnschedulable, "x")
	w := ReadOutcome([]*corev1.Pod{b, a, a})
	if len(w.Messages) != 2 || !slices.IsSorted(w.Messages) {
		t.Errorf("messages %q", w.Messages)
	}
	if got := w.Topics(); !slices.Equal(got, []string{"cordon", "resource"}) {
		t.Errorf("topics %q", got)
	}
}

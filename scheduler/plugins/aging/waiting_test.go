package aging

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// members is the part of a group's state that matters.
type members struct {
	fwk.PodGroupState
	open, placed []*corev1.Pod
}

func (m members) ScheduledPods() []*corev1.Pod { return m.placed }

func (m members) ScheduledPodsCount() int { return len(m.placed) }

func (m members) UnscheduledPods() map[string]*corev1.Pod {
	all := map[string]*corev1.Pod{}
	for _, pod := range m.open {
		all[pod.Name] = pod
	}
	return all
}

func virtualGroup(minCount int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "labels:g"},
		Spec: schedulingv1beta1.PodGroupSpec{Priority: ptr.To(int32(7)), SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
}

func refusedAt(t time.Time, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(t)}}
	}
}

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue"}} }

func TestWaits(t *testing.T) {
	unschedulable := refusedAt(noon, corev1.PodReasonUnschedulable)
	for name, c := range map[string]struct {
		state members
		want  bool
		fault bool // neither waits nor idle
	}{
		"found no place":             {members{open: []*corev1.Pod{aPod("a", "", 1, unschedulable), aPod("b", "", 1)}}, true, false},
		"not tried yet":              {members{open: []*corev1.Pod{aPod("a", "", 1), aPod("b", "", 1)}}, false, false},
		"a member missing":           {members{open: []*corev1.Pod{aPod("a", "", 1, unschedulable)}}, false, false},
		"held by a gate":             {members{open: []*corev1.Pod{aPod("a", "", 1, unschedulable), aPod("b", "", 1, gated)}}, false, false},
		"waits for the gang":         {members{open: []*corev1.Pod{aPod("a", "", 1, refusedAt(noon, "GangWaiting")), aPod("b", "", 1)}}, false, false},
		"lost a member":              {members{open: []*corev1.Pod{aPod("a", "", 1, unschedulable)}, placed: []*corev1.Pod{aPod("b", "n", 1)}}, true, false},
		"a member above the minimum": {members{open: []*corev1.Pod{aPod("c", "", 1, unschedulable)}, placed: []*corev1.Pod{aPod("a", "n", 1), aPod("b", "n", 1)}}, false, false},
		"a fault":                    {members{open: []*corev1.Pod{aPod("a", "", 1, refusedAt(noon, corev1.PodReasonSchedulerError)), aPod("b", "", 1)}}, false, true},
	} {
		g := read(virtualGroup(2), c.state)
		ok := g.Waits
		if g.Idle == c.want && !c.fault || ok != c.want || ok && (!g.Since.Equal(noon) || len(g.Open) != len(c.state.open) || g.Priority != 7 || g.Members.MinMember != 2 || len(g.Members.Bound) != len(c.state.placed)) {
			t.Errorf("%s: waits %v, %+v", name, ok, g)
		}
	}
}

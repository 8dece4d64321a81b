package engine

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// eventReasons records the reasons of the events that pass.
type eventReasons struct{ list, notes []string }

func (r *eventReasons) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.list, r.notes = append(r.list, reason), append(r.notes, fmt.Sprintf(note, args...))
}

func (r *eventReasons) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

func TestFilterMemberEvents(t *testing.T) {
	group := "labels:g"
	single := &corev1.Pod{}
	member := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group}}}
	for _, c := range []struct {
		about  runtime.Object
		reason string
		passes bool
	}{
		{single, "Scheduled", true}, {single, "FailedScheduling", true},
		{member, "Scheduled", false}, {member, "FailedScheduling", false},
		{member, "Preempted", true}, {&corev1.ObjectReference{Kind: "PodGroup"}, "Scheduled", true},
	} {
		passed := &eventReasons{}
		FilterMemberEvents(passed).WithLogger(klog.Background()).Eventf(c.about, nil, corev1.EventTypeNormal, c.reason, "Scheduling", "100%% %s", "\x1b[2J")
		if got := slices.Contains(passed.list, c.reason); got != c.passes || got && passed.notes[0] != "100% ^[[2J" {
			t.Errorf("%s about a %T (gang %v) passes: %t, want %t; as %q", c.reason, c.about, c.about == runtime.Object(member), got, c.passes, passed.notes)
		}
	}
}

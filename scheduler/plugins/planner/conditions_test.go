package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// recordedConditions records the events and touches of conditions.
type recordedConditions struct {
	*Conditions
	t       *testing.T
	id      types.NamespacedName
	clock   *testclock.FakePassiveClock
	events  []string
	at      []time.Time
	touched int
}

func newRecordedConditions(t *testing.T) *recordedConditions {
	t.Helper()
	s := &recordedConditions{t: t, id: types.NamespacedName{Namespace: "research", Name: "labels:llama"}, clock: testclock.NewFakePassiveClock(time.Unix(1e9, 0))}
	s.Conditions = &Conditions{
		groups: engine.NewVirtualGroups(), reasons: reasons.New(s.clock, nil), touch: func(gang.Key) { s.touched++ },
		report: func(group *schedulingv1beta1.PodGroup) {
			c := apimeta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
			s.events, s.at = append(s.events, c.Reason+": "+c.Message), append(s.at, s.clock.Now())
			s.touched++
		},
	}
	s.groups.Set(&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.id.Namespace, Name: s.id.Name, UID: "g"}})
	return s
}

func reasonOf(code answer.Code, message string) reasons.Reason {
	return reasons.Reason{Finding: answer.Finding{Code: code, Message: message}, Required: 3, Fit: 1}
}

// fails is a failed attempt, as the engine reports it.
func (s *recordedConditions) fails(reason *reasons.Reason, engine string) {
	if reason != nil {
		s.reasons.Report(s.id, *reason, false)
	}
	s.SetCondition(s.id.Namespace, s.id.Name, metav1.Condition{
		Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: engine,
	})
}

// starts is an attempt that placed it.
func (s *recordedConditions) starts() {
	s.SetCondition(s.id.Namespace, s.id.Name, metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"})
	s.reasons.Clear(s.id)
}

func (s *recordedConditions) want(what string, events ...string) {
	s.t.Helper()
	if got := strings.Join(s.events, "\n"); got != strings.Join(events, "\n") {
		s.t.Errorf("%s: events\n%s\nwant\n%s", what, got, strings.Join(events, "\n"))
	}
	s.events = nil
}

func TestOneEventForEachChange(t *testing.T) {
	s := newRecordedConditions(t)
	s.starts()
	s.want("it starts at once", "Scheduled: ")

	s = newRecordedConditions(t)
	busy, broken := reasonOf(answer.NodesBusy, "4 of 8 GPUs free"), reasonOf(answer.Fragmented, "in pieces")
	for range 10 {
		s.fails(&busy, "minCount cannot be satisfied")
	}
	s.want("it waits", "Unschedulable: NODES_BUSY: 1 of the 3 members that the gang needs fit: 4 of 8 GPUs free")
	if group, _ := s.groups.Get(s.id.Namespace, s.id.Name); !strings.Contains(group.Status.Conditions[0].Message, "4 of 8 GPUs free") {
		t.Errorf("the condition's message is %q", group.Status.Conditions[0].Message)
	}
	s.fails(&broken, "minCount cannot be satisfied")
	s.want("for another reason", "Unschedulable: FRAGMENTED: 1 of the 3 members that the gang needs fit: in pieces")
	s.starts()
	s.want("it starts", "Scheduled: ")

	// The engine's condition stays True.
	for range 10 {
		s.fails(&busy, "minCount cannot be satisfied")
	}
	s.want("it lost a member", "Unschedulable: NODES_BUSY: 1 of the 3 members that the gang needs fit: 4 of 8 GPUs free")
	s.starts()
	s.starts()
	s.want("it is whole again", "Scheduled: ")
	aboveMin := reasonOf(answer.TooBig, "no room for more")
	aboveMin.AboveMin = true
	s.fails(&aboveMin, "minCount cannot be satisfied")
	s.fails(nil, "no room")
	s.starts()
	s.want("a member above the minimum has no place")
}

func TestTheEnginesMessageWhereThereIsNoOther(t *testing.T) {
	s := newRecordedConditions(t)
	for range 10 {
		s.fails(nil, "waiting for preemption")
	}
	s.want("no reason", "Unschedulable: FITS_NOT_PLACED: waiting for preemption")
}

// An attempt in which no member was tried says nothing of why they wait: what the next one finds is reported at once.
func TestMembersThatWereNotTried(t *testing.T) {
	s := newRecordedConditions(t)
	s.SetCondition(s.id.Namespace, s.id.Name, metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse,
		Reason: schedulingv1beta1.PodGroupReasonSchedulerError, Message: spurious})
	if reason, ok := s.reasons.LastReported(s.id); ok {
		t.Errorf("reported %+v", reason)
	}
	s.want("nothing was tried", "Unschedulable: "+membersGone)
	s.fails(nil, "0/2 nodes are available")
	s.want("the next attempt", "Unschedulable: FITS_NOT_PLACED: 0/2 nodes are available")
}

// Count based: however often a gang is tried, and however the reason changes,
// users get a bounded number of events and statuses.
func TestWritesAreBounded(t *testing.T) {
	for name, attempt := range map[string]func(s *recordedConditions, second int){
		"numbers": func(s *recordedConditions, i int) {
			n := reasonOf(answer.NodesBusy, fmt.Sprint(i))
			s.fails(&n, "minCount")
		},
		"reasons": func(s *recordedConditions, i int) {
			n := reasonOf(answer.Code(fmt.Sprint(i)), "m")
			s.fails(&n, "minCount")
		},
		"engine": func(s *recordedConditions, i int) { s.fails(nil, fmt.Sprintf("%d nodes are available", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newRecordedConditions(t)
			for second := range 300 {
				attempt(s, second)
				s.clock.SetTime(s.clock.Now().Add(time.Second))
			}
			for i := reasons.PerMinute; i < len(s.at); i++ {
				if s.at[i].Sub(s.at[i-reasons.PerMinute]) < time.Minute {
					t.Fatalf("more than %d events in a minute", reasons.PerMinute)
				}
			}
			if limit := 5 * reasons.PerMinute; s.touched > limit || len(s.events) < 5 {
				t.Errorf("%d events and %d statuses in five minutes, want at most %d", len(s.events), s.touched, limit)
			}
		})
	}
}

// The reason of a gang is deleted when it lacks members.
func TestAnIncompleteGangHasNoReason(t *testing.T) {
	s := newRecordedConditions(t)
	n := reasonOf(answer.NodesBusy, "m")
	s.reasons.Set(s.id, n)
	s.fails(&n, "minCount")
	GroupSink{s.groups, s.reasons}.Delete(s.id.Namespace, s.id.Name)
	if _, ok := s.reasons.Get(s.id); ok {
		t.Error("the reason is still there")
	}
	if _, _, ok := s.reasons.TakeReport(s.id); ok {
		t.Error("it is still reported")
	}
	s.fails(nil, "an attempt that ends after it") // it would never be forgotten
	if _, ok := s.reasons.LastReported(s.id); ok {
		t.Error("it is reported when it is gone")
	}
}

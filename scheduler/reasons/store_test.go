package reasons

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestAnEqualReasonIsNoChange(t *testing.T) {
	changes := 0
	s := New(clock.RealClock{}, func(types.NamespacedName) { changes++ })
	group := types.NamespacedName{Namespace: "research", Name: "a"}
	reason := Reason{Finding: answer.Finding{Code: "INSUFFICIENT_GPU", Message: "m"}, Required: 3, Fit: 1, Shortages: []Shortage{{Resource: "nvidia.com/gpu", Requested: "3"}}}
	s.Set(group, reason)
	again := reason
	again.Shortages = []Shortage{{Resource: "nvidia.com/gpu", Requested: "3"}}
	s.Set(group, again)
	if got, ok := s.Get(group); !ok || got.Required != 3 || changes != 1 {
		t.Errorf("got %+v, %v after %d changes", got, ok, changes)
	}
	reason.NextAttempt = time.Unix(1, 0)
	s.Set(group, reason)
	if got, _ := s.Get(group); changes != 1 || !got.NextAttempt.Equal(reason.NextAttempt) {
		t.Errorf("another time of the next attempt: %d changes, %s", changes, got.NextAttempt)
	}
	reason.Fit = 2
	s.Set(group, reason)
	s.Clear(group)
	s.Clear(group)
	if _, ok := s.Get(group); ok || changes != 3 {
		t.Errorf("reason there: %v, %d changes, want 3", ok, changes)
	}
}

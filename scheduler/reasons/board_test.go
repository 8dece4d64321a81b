package reasons

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestOnlyNewsIsAChange(t *testing.T) {
	changes := 0
	b := &Board{Changed: func(types.NamespacedName) { changes++ }}
	group := types.NamespacedName{Namespace: "research", Name: "a"}
	note := Note{Finding: answer.Finding{Code: "INSUFFICIENT_GPU", Message: "m"}, Need: 3, Fit: 1, Shortages: []Shortage{{Resource: "nvidia.com/gpu", Requested: "3"}}}
	b.Post(group, note)
	again := note
	again.Shortages = []Shortage{{Resource: "nvidia.com/gpu", Requested: "3"}}
	b.Post(group, again)
	if got, ok := b.Get(group); !ok || got.Need != 3 || changes != 1 {
		t.Errorf("got %+v, %v after %d changes", got, ok, changes)
	}
	note.NextAttempt = time.Unix(1, 0)
	b.Post(group, note)
	if got, _ := b.Get(group); changes != 1 || !got.NextAttempt.Equal(note.NextAttempt) {
		t.Errorf("another time of the next attempt: %d changes, %s", changes, got.NextAttempt)
	}
	note.Fit = 2
	b.Post(group, note)
	b.Clear(group)
	b.Clear(group)
	if _, ok := b.Get(group); ok || changes != 3 {
		t.Errorf("note there: %v, %d changes, want 3", ok, changes)
	}
}

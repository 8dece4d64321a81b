package gangcache

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// A gang that needs no number of members, or of which that is not known any more,
// has a priority all the same.
func TestPriority(t *testing.T) {
	r := New(sink{})
	if p := r.Priority(objectGang); p != 0 {
		t.Errorf("priority %d of no gang", p)
	}
	r.SetPod(pod("a", ofObject, priority(7)))
	if _, _, declared := r.Required(objectGang); declared || r.Priority(objectGang) != 7 {
		t.Errorf("without an object: declared %t, priority %d, want 7", declared, r.Priority(objectGang))
	}
	basic := object(objectGang, 0)
	basic.Basic = true
	r.SetObject(objectGang, basic)
	if _, _, declared := r.Required(objectGang); declared || r.Priority(objectGang) != 7 {
		t.Errorf("with one that needs no number: declared %t, priority %d, want 7", declared, r.Priority(objectGang))
	}
}

func TestAllAreThoseWithoutPodsToo(t *testing.T) {
	r := New(sink{})
	bare := gang.Key{Dialect: gang.Volcano, Namespace: "research", Name: "bare"}
	r.SetObject(bare, object(bare, 2))
	r.SetPod(pod("a", ofObject))
	if keys := r.Keys(); len(keys) != 1 || keys[0] != objectGang {
		t.Errorf("with pods: %v", keys)
	}
	if keys := r.All(); len(keys) != 2 || keys[0] != bare || keys[1] != objectGang {
		t.Errorf("all: %v", keys)
	}
}

package belowmin

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

var groupA = keyA.VirtualGroup()

// A gang whose members are being bound, or may have been, is left alone until
// that is over, and the time does not count.
func TestAGangOnTheWayIsLeftAlone(t *testing.T) {
	w := newFixture(t, short)
	w.bindingStarted(groupA, "a-0")
	w.bindingStarted(groupA, "a-2")
	w.clock.Step(time.Minute)
	w.pod("a-0", 0, 60)
	w.pod("a-1", 0, 60)
	w.pod("a-2", 0, -1)
	w.bindingEnded(groupA, "a-0", false)
	w.after(0)
	w.after(20 * time.Second)
	w.wantDid()
	w.bindingEnded(groupA, "a-2", false)
	w.after(4 * time.Second)
	w.bindingStarted(groupA, "a-2") // again
	w.after(20 * time.Second)
	w.bindingEnded(groupA, "a-2", false)
	w.after(5 * time.Second)
	w.wantDid()
	w.after(time.Second)
	w.wantDid("patch pods/status a-0", "delete pods a-0", "patch pods/status a-1", "delete pods a-1")
}

// A member sets out while the API server is queried about it.
func TestAMemberSetsOutAtTheLastMoment(t *testing.T) {
	w := newFixture(t, short)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.bindingStarted(groupA, "a-2")
		return false, nil, nil
	})
	w.after(0)
	w.after(10 * time.Second)
	w.wantDid()
	w.wantEvents()
}

// Of gangs that are well nothing is kept.
func TestWaysAreForgotten(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"whole":   func(w *fixture) { w.pod("a-2", 0, 1) },
		"gone":    func(w *fixture) { w.pods = nil },
		"waiting": func(w *fixture) { w.pods = nil; w.pod("a-3", 0, -1) },
	} {
		w := newFixture(t, short)
		w.bindingStarted(groupA, "a-0")
		w.bindingEnded(groupA, "a-0", false)
		w.bindingEnded(groupA, "a-0", false)
		w.pod("a-0", 0, 1)
		w.pod("a-1", 0, 1)
		w.after(0)
		if len(w.inFlight) != 1 {
			t.Errorf("%s: what was on its way counts while the gang is below its minimum", name)
		}
		change(w)
		w.bindingStarted(groupA, "a-4")
		w.after(0)
		if _, now := w.inFlightTime(groupA); !now {
			t.Errorf("%s: one that is on its way was forgotten", name)
		}
		w.bindingEnded(groupA, "a-4", false)
		w.after(0)
		if len(w.inFlight) != 0 {
			t.Errorf("%s: %d gangs are tracked indefinitely", name, len(w.inFlight))
		}
	}
}

// Where the plugin is disabled nothing is done, and no binding is tracked.
func TestWithoutThePlugin(t *testing.T) {
	w := newFixture(t, short)
	clear(w.profiles)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.after(0)
	w.after(24 * time.Hour)
	w.wantDid()
	w.wantEvents()
}

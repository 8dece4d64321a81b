package aging

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// expecting has all members of a gang run for so long at most.
func (g Candidate) expecting(d time.Duration) Candidate {
	for _, pod := range g.Open {
		pod.Spec.ActiveDeadlineSeconds = ptr.To(int64(d / time.Second))
	}
	return g
}

// Of two gangs, the one gets the reservation that is served first, whichever came first.
func TestTheReservationFollowsTheOrder(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	long, short := aGang("long", 4, 1).expecting(100*time.Hour), aGang("short", 4, 1).expecting(time.Hour)
	long.Since = noon.Add(-10 * time.Hour)
	y.waiting = []Candidate{long, short}
	want := func(what string, g Candidate, held []Reservation) {
		t.Helper()
		if len(held) != 1 || held[0].Group != g.Group {
			t.Errorf("%s: held %+v", what, held)
		}
	}
	want("when the short one has just come", long, y.reconcile(t, time.Minute))
	want("when it has waited for its runtime", short, y.reconcile(t, time.Hour))
	claimed := y.claims.List(claims.Reservation)
	const text = "reserved for a gang of another namespace (4 cpu, priority 0), which has waited since 2026-11-21T12:00:00Z and comes first by response ratio (expected to run 60m by its deadline)"
	if got := claimed[0].Why.For(y.claims.Reader("elsewhere")); got != text {
		t.Errorf("%q, want %q", got, text)
	}
}

// Room comes free where nobody expected it. A reservation goes there if that is sooner, and does not for anything else.
func TestAReservationMovesToWhatComesSooner(t *testing.T) {
	y := newYard(aNode("a", 4), aNode("b", 4))
	y.pods = append(onNode("a", 4), onNode("b", 4)...)
	y.waiting = []Candidate{aGang("g", 4, 1)}
	before := y.reconcile(t, time.Minute)
	if before[0].Nodes["a"].Members == nil {
		t.Fatalf("reserved %+v", before)
	}
	y.pods = y.pods[:7] // b has lost one of four, and a none
	if held := y.reconcile(t, time.Second); held[0].Nodes["a"].Members == nil {
		t.Error("it moves though nobody looked for others yet")
	}
	if held := y.reconcile(t, reconsider); held[0].Nodes["b"].Members == nil || held[0].Since != before[0].Since {
		t.Errorf("on b fewer have to end, and it is reserved %+v", held)
	}
	y.pods = append(y.pods[1:4:4], y.pods[4:]...) // as many on either
	if held := y.reconcile(t, reconsider); held[0].Nodes["b"].Members == nil {
		t.Error("it moves without need")
	}
}

// Pods that end before the start use reserved places meanwhile: the gang cannot, and must not lose its reservation for that.
func TestAReservationInUseIsNotGivenUp(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4, endsIn(10*time.Hour))
	y.waiting = []Candidate{aGang("g", 4, 1)}
	y.reconcile(t, time.Minute)
	// They end early, and another that is to end before they were to has come.
	y.pods = []*corev1.Pod{aPod("short", "a", 1, startedAt(noon), endsIn(8*time.Hour))}
	for range 20 {
		if held := y.reconcile(t, time.Minute); len(held) != 1 {
			t.Fatalf("given up: %+v", held)
		}
	}
	y.pods = nil
	for range 6 {
		y.reconcile(t, time.Minute)
	}
	if len(y.Held()) != 0 {
		t.Error("kept, though its places are free and the gang does not use them")
	}
}

// A promise speeds its gang up, so it is looked at wherever the gang runs.
func TestABrokenPromiseOutsideOfTheReservation(t *testing.T) {
	y := newYard(aNode("a", 4), aNode("b", 4))
	liar := aPod("liar", "b", 4, runsFor(5*time.Minute))
	y.pods = append(onNode("a", 4, endsIn(time.Hour)), liar)
	next := aPod("next", "", 1, runsFor(5*time.Minute))
	if _, _, ok := y.claims.Limit(next); !ok {
		t.Fatal("a promise does not count")
	}
	y.waiting = []Candidate{aGang("g", 4, 1)}
	y.waiting[0].Group = types.NamespacedName{Namespace: "other", Name: "labels:g"}
	y.reconcile(t, time.Minute)
	if _, _, ok := y.claims.Limit(next); ok {
		t.Error("it counts, though one of its namespace was broken")
	}
	endsIn(time.Hour)(next)
	if _, enforced, ok := y.claims.Limit(next); !ok || !enforced {
		t.Error("a deadline does not count, which needs no trust")
	}
}

// A promise orders the queue, so that it is looked after where no gang waits for a reservation, too.
func TestABrokenPromiseWhileNoGangIsDue(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = []*corev1.Pod{aPod("liar", "a", 1, runsFor(5*time.Minute))}
	next := aPod("next", "", 1, runsFor(5*time.Minute))
	if _, _, ok := y.claims.Limit(next); !ok {
		t.Fatal("a promise does not count")
	}
	y.reconcile(t, time.Minute)
	if _, _, ok := y.claims.Limit(next); ok {
		t.Error("it counts, though one of its namespace was broken")
	}
}

// The engine holds a list of reservations while it reconciles them, and Run ends one meanwhile: that stays so.
func TestWhatEndsDuringAReconciliationStaysSo(t *testing.T) {
	y := newYard(aNode("a", 4))
	gone, stays := Reservation{Group: types.NamespacedName{Name: "gone"}}, Reservation{Group: types.NamespacedName{Name: "stays"}}
	y.update(func([]Reservation) []Reservation { return []Reservation{gone, stays} }, types.NamespacedName{})
	y.end(func(r Reservation) bool { return r.Group == gone.Group }, types.NamespacedName{})
	y.end(func(r Reservation) bool { return r.Group.Name == "other" }, types.NamespacedName{})
	if held := y.Held(); len(held) != 1 || held[0].Group != stays.Group {
		t.Errorf("held %v", held)
	}
	if got := kept([]Reservation{gone, stays}, []Reservation{gone, stays}, y.Held()); len(got) != 1 || got[0].Group != stays.Group {
		t.Errorf("after the reconciliation: held %v", got)
	}
}

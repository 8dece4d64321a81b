package aging

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// The members' claims are looked up with the cluster.
func TestTheClusterIsReadWithTheMembers(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods, y.waiting = onNode("a", 4), []Candidate{aGang("g", 2, 1), aGang("h", 1, 1)}
	if y.reconcile(t, time.Minute); len(y.requestedPods) != 3 {
		t.Errorf("asked for %d pods, want all that wait", len(y.requestedPods))
	}
}

// A gang for which there can be no places does not keep the others of its priority from having any, and is not searched for again
// all the time.
func TestAHopelessGangIsPassedOver(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	hopeless, g := aGang("hopeless", 9, 1), aGang("g", 2, 1)
	hopeless.Since = noon.Add(-time.Hour)
	y.waiting = []Candidate{g, hopeless}
	tried := 0
	y.roles = func(pods []*corev1.Pod) {
		if len(pods) == 9 {
			tried++
		}
	}
	if held := y.reconcile(t, time.Minute); len(held) != 1 || held[0].Group != g.Group {
		t.Fatalf("held %+v", held)
	}
	for range 60 {
		y.reconcile(t, time.Second)
	}
	if tried < 3 || tried > 7 {
		t.Errorf("searched %d times in a minute", tried)
	}
	// It is not forgotten: there is room now, and it has waited longer.
	y.nodes = append(y.nodes, aNode("b", 8))
	if held := y.reconcile(t, time.Minute); len(held) != 1 || held[0].Group != hopeless.Group {
		t.Errorf("held %+v", held)
	}
	y.waiting = nil
	if y.reconcile(t, 2*maxBackoff); len(y.failed.entries) != 0 {
		t.Errorf("remembers %v", y.failed.entries)
	}
}

// What a reconciliation costs is rested for.
func TestAReconciliationRests(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods, y.waiting = onNode("a", 4), []Candidate{aGang("g", 2, 1)}
	y.roles = func([]*corev1.Pod) { y.clock.Step(400 * time.Millisecond) }
	if y.reconcile(t, time.Minute); y.looked != 1 {
		t.Fatalf("looked %d times", y.looked)
	}
	if y.reconcile(t, 7*time.Second); y.looked != 1 {
		t.Error("looks again before it has rested")
	}
	if y.reconcile(t, time.Second); y.looked != 2 {
		t.Error("does not look again")
	}
}

// Places that are kept for others are not waited for: dead members are replaced, and room that is made for a preemptor is used.
func TestClaimsOfOthersAreRespected(t *testing.T) {
	filler := func() []*corev1.Pod { return append(onNode("a", 4, endsIn(time.Hour)), onNode("b", 4)...) }
	all := map[types.UID]bool{"a-0": true, "a-1": true, "a-2": true, "a-3": true}
	for name, c := range map[string]struct {
		kind   claims.Kind
		claims []claims.Claim
		want   string
	}{
		"nothing":      {claims.Preemption, nil, "a"},
		"dead members": {claims.Replacement, []claims.Claim{{Pod: aPod("held", "", 2)}}, "b"},
		"a preemptor":  {claims.Preemption, []claims.Claim{{Pod: aPod("preemptor", "", 4), Leaving: all}}, "b"},
		"a small one":  {claims.Preemption, []claims.Claim{{Pod: aPod("preemptor", "", 1), Leaving: all}}, "a"},
	} {
		y := newYard(aNode("a", 4), aNode("b", 4))
		y.pods = filler()
		y.others(c.kind, c.claims...)
		y.waiting = []Candidate{aGang("g", 1, 3)}
		held := y.reconcile(t, time.Minute)
		if len(held) != 1 || len(held[0].Nodes[c.want].Members) != 1 {
			t.Errorf("%s: held %+v, want it on %s", name, held, c.want)
			continue
		}
		for _, uid := range leaving(held[0]) {
			if !slices.ContainsFunc(y.pods, func(p *corev1.Pod) bool { return string(p.UID) == uid }) {
				t.Errorf("%s: waits for the end of %s, which is not there", name, uid)
			}
		}
	}
}

// A reservation that stands is not lost because one of those whose end it waits for has died and is to be replaced; it is if
// room on its nodes is cleared for others.
func TestWhatBecomesOfAReservationWithOtherClaims(t *testing.T) {
	for name, c := range map[string]struct {
		kind  claims.Kind
		stays bool
	}{
		"a dead member": {claims.Replacement, true},
		"a preemptor":   {claims.Preemption, false},
	} {
		y := newYard(aNode("a", 4))
		y.pods, y.waiting = onNode("a", 4), []Candidate{aGang("g", 4, 1)}
		y.reconcile(t, time.Minute)
		y.pods = y.pods[1:]
		y.others(c.kind, claims.Claim{Pod: aPod("other", "", 1)})
		if held := y.reconcile(t, time.Second); (len(held) == 1) != c.stays {
			t.Errorf("%s: held %+v", name, held)
		}
	}
}

// Pods that have not ended when they should have are not those that end soonest.
func TestPodsThatAreOverdue(t *testing.T) {
	terminating := func(since time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(-since))) }
	}
	later := endsIn(2 * time.Hour)
	for name, c := range map[string]struct {
		overdue func(*corev1.Pod)
		want    string // of two nodes
	}{
		"terminating":                  {terminating(time.Second), "a"},
		"hangs":                        {terminating(2 * time.Minute), "b"},
		"ends soon":                    {endsIn(time.Minute), "a"},
		"runs longer than it promised": {endsIn(-30 * time.Minute), "b"},
	} {
		r, ok := choose(t, []*corev1.Node{aNode("a", 4), aNode("b", 4)}, []*corev1.Pod{aPod("x", "a", 4, c.overdue), aPod("y", "b", 4, later)}, aGang("g", 1, 4))
		if !ok || len(r.Nodes[c.want].Members) != 1 {
			t.Errorf("%s: reserved %+v, want %s", name, r.Nodes, c.want)
		}
	}
	// Without another node: one that runs longer may still end, one that hangs is no hope.
	y := aPod("y", "b", 4, endsIn(-30*time.Minute))
	if r, ok := choose(t, []*corev1.Node{aNode("b", 4)}, []*corev1.Pod{y}, aGang("g", 1, 4)); !ok || !r.Start.IsZero() {
		t.Errorf("ok %v, starts %s", ok, r.Start)
	}
	terminating(time.Hour)(y)
	if r, ok := choose(t, []*corev1.Node{aNode("b", 4)}, []*corev1.Pod{y}, aGang("g", 1, 4)); ok {
		t.Errorf("reserved %+v", r.Nodes)
	}
}

// A reservation whose start has passed moves to where there is more hope.
func TestAReservationDoesNotWaitForThoseThatAreOverdue(t *testing.T) {
	for name, overdue := range map[string]func(*corev1.Pod){
		"a promise": endsIn(5 * time.Minute),
		"a deletion": func(p *corev1.Pod) {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(5 * time.Minute)))
		},
	} {
		y := newYard(aNode("a", 4), aNode("b", 4))
		y.pods = []*corev1.Pod{aPod("x", "a", 4, overdue), aPod("y", "b", 4, endsIn(time.Hour))}
		y.waiting = []Candidate{aGang("g", 1, 4)}
		for after, want := range []string{"a", "a", "b"} {
			wait := []time.Duration{time.Minute, 270 * time.Second, 90 * time.Second}[after] // until 12:01:00, 12:05:30, 12:07:00
			if held := y.reconcile(t, wait); len(held) != 1 || len(held[0].Nodes[want].Members) != 1 {
				t.Errorf("%s: held %+v, want %s", name, held, want)
			}
		}
	}
}

// What did not count as waiting to whoever saw it: being held back by a gate, or without all members.
func TestOnlyWaitingForPlacesCounts(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	g := aGang("g", 4, 1)
	g.Since = noon.Add(-time.Hour) // its pods have had no place since then
	y.idle = []Candidate{g}
	y.reconcile(t, 30*time.Second)
	y.idle, y.waiting = nil, []Candidate{g}
	if held := y.reconcile(t, 59*time.Second); len(held) != 0 {
		t.Errorf("held %+v after 59s", held)
	}
	if held := y.reconcile(t, time.Second); len(held) != 1 || !held[0].Since.Equal(noon.Add(30*time.Second)) {
		t.Errorf("held %+v after 60s", held)
	}
	// No replica was there to see it.
	if held := func() []Reservation {
		y := newYard(aNode("a", 4))
		y.waiting = []Candidate{g}
		return y.reconcile(t, 0)
	}(); len(held) != 1 {
		t.Errorf("a scheduler that takes over begins to count: %+v", held)
	}
}

// An API server may leave out since when a pod has had no place.
func TestAGangWithoutATransitionTimeAges(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	g := aGang("g", 4, 1)
	g.Since = time.Time{}
	y.waiting = []Candidate{g}
	if held := y.reconcile(t, time.Second); len(held) != 0 {
		t.Errorf("held %+v at once", held)
	}
	if held := y.reconcile(t, time.Minute); len(held) != 1 || !held[0].Since.Equal(noon.Add(time.Second)) {
		t.Errorf("held %+v after a minute", held)
	}
	if y.waiting = nil; len(y.reconcile(t, time.Second)) != 0 || len(y.ages) != 0 {
		t.Errorf("remembers %v", y.ages)
	}
}

// A gang that lost a member may have another one in its stead.
func TestWhoLostAMemberIsNotBound(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods, y.waiting = onNode("a", 3), []Candidate{aGang("g", 4, 1)}
	y.reconcile(t, time.Minute)
	if kept := y.withheld(t, aPod("p", "", 1)); len(kept) != 1 {
		t.Fatalf("kept %+v", kept)
	}
	other := types.NamespacedName{Name: "other"}
	y.lacking = map[types.NamespacedName]int{other: 1}
	if kept := y.withheld(t, aPod("p", "", 1)); len(kept) != 1 {
		t.Errorf("kept %+v from a gang that was never whole", kept)
	}
	y.claims.Whole(other, []*corev1.Pod{aPod("lost", "a", 1)})
	if kept := y.withheld(t, aPod("p", "", 1)); len(kept) != 0 {
		t.Errorf("kept %+v", kept)
	}
}

// Members that ran before the reservation use room alongside it.
func TestMembersThatRanBeforeCount(t *testing.T) {
	y := newYard(aNode("a", 4))
	before := aPod("g-9", "a", 2)
	y.pods = []*corev1.Pod{before, aPod("goes", "a", 2)}
	g := aGang("g", 1, 1)
	g.Members.MinMember, g.Members.Bound = 2, []types.UID{before.UID}
	y.waiting = []Candidate{g}
	held := y.reconcile(t, time.Minute)
	if len(held) != 1 || !slices.Equal(leaving(held[0]), []string{"goes"}) {
		t.Fatalf("held %+v", held)
	}
	// Of 4, a member has 2 and the other one is to have 1.
	y.pods = y.pods[:1]
	for cpus, want := range map[int]bool{1: true, 2: false} {
		if got := !y.refused(t, aPod("p", "", cpus), "a"); got != want {
			t.Errorf("a pod of %d cpus is admitted: %v", cpus, got)
		}
	}
}

// Who was turned away is forgotten when it has a place.
func TestThoseTurnedAwayAreForgotten(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	g := aGang("g", 4, 1)
	y.waiting, y.placed = []Candidate{g}, map[types.UID]bool{}
	y.reconcile(t, time.Minute)
	y.pods = nil
	for i := range 10 {
		pod := aPod(fmt.Sprint("p", i), "", 1)
		if !y.refused(t, pod, "a") {
			t.Errorf("%s may use reserved room", pod.Name)
		}
		y.placed[pod.UID] = i > 0
	}
	y.claims.Prune()
	y.waiting = nil
	if y.sweep(); !slices.Equal(y.woken, []string{"team/p0"}) {
		t.Errorf("woken %v", y.woken)
	}
}

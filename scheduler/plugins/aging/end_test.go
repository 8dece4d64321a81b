package aging

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// An end that is known and far away is no better than one that is not known: a reservation neither waits for it nor moves there, which would let
// others into the room that it has.
func TestAFarEndIsNoBetter(t *testing.T) {
	y := newYard(aNode("a", 4), aNode("b", 4))
	y.pods = []*corev1.Pod{aPod("unknown", "a", 4), aPod("far", "b", 4, endsIn(30*24*time.Hour))}
	y.waiting = []Candidate{aGang("g", 1, 4)}
	for _, after := range []time.Duration{time.Minute, reconsider, time.Hour} {
		if held := y.reconcile(t, after); held[0].Nodes["a"].Members == nil || !held[0].Start.IsZero() {
			t.Fatalf("reserved %+v", held)
		}
	}
	y.pods[1] = aPod("near", "b", 4, endsIn(3*time.Hour))
	if held := y.reconcile(t, reconsider); held[0].Nodes["b"].Members == nil {
		t.Errorf("an end that is near is better: reserved %+v", held)
	}
}

// Whoever is not trusted has no known end.
func TestEndsOfWhoIsNotTrusted(t *testing.T) {
	y := newYard(aNode("a", 4), aNode("b", 4))
	liar := aPod("liar", "a", 1, runsFor(time.Minute)) // an hour ago
	fresh := aPod("fresh", "a", 3, runsFor(time.Hour+30*time.Minute))
	other := aPod("other", "b", 4, startedAt(noon.Add(-10*time.Hour)))
	other.Namespace = "others"
	y.pods = []*corev1.Pod{liar, fresh, other}
	y.waiting = []Candidate{aGang("g", 1, 4)}
	y.reconcile(t, time.Minute) // sees the liar
	y.pods = []*corev1.Pod{fresh, other}
	if held := y.reconcile(t, reconsider); held[0].Nodes["b"].Members == nil {
		t.Errorf("the oldest pod is on b, and it waits for a promise that does not count: %+v", held)
	}
}

// A promise counts as it was when the pod got its node, or shorter: it is not taken back.
func TestAPromiseIsNotTakenBack(t *testing.T) {
	for name, later := range map[string]map[string]string{"dropped": nil, "longer": {claims.RuntimeAnnotation: "1000h"}} {
		y := newYard(aNode("a", 4))
		pod := aPod("p", "a", 1, startedAt(noon), runsFor(time.Minute))
		y.pods = []*corev1.Pod{pod}
		y.reconcile(t, time.Second)
		pod.Annotations = later
		y.reconcile(t, 90*time.Second)
		if _, _, ok := y.claims.Limit(aPod("q", "", 1, runsFor(time.Minute))); !ok {
			t.Errorf("%s: broken before it is late", name)
		}
		y.reconcile(t, 5*time.Minute)
		if _, _, ok := y.claims.Limit(aPod("q", "", 1, runsFor(time.Minute))); ok {
			t.Errorf("%s: the promise was not kept, and the namespace is trusted", name)
		}
	}
}

// The grace after a deadline is time on the node, and a grace that ends after a promise does not keep it.
func TestGraceCounts(t *testing.T) {
	pod := aPod("p", "a", 1, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(60)) })
	for grace, want := range map[int64]time.Duration{30: time.Minute, 0: time.Minute, 90: 2 * time.Minute, 1 << 62: 100*365*24*time.Hour + time.Minute} {
		pod.Spec.TerminationGracePeriodSeconds = &grace
		if got, ok := claims.RuntimeLimit(pod); !ok || got != want {
			t.Errorf("grace of %ds: %s", grace, got)
		}
	}
	for name, c := range map[string]struct {
		deleted time.Duration // when its grace ends, after the promise
		kept    bool
	}{"in time": {30 * time.Second, true}, "a day later": {24 * time.Hour, false}} {
		y := newYard(aNode("a", 4))
		p := aPod("p", "a", 1, startedAt(noon), runsFor(time.Minute))
		p.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(time.Minute + c.deleted)))
		y.pods = []*corev1.Pod{p}
		y.reconcile(t, time.Second)
		y.reconcile(t, 10*time.Minute)
		if _, _, ok := y.claims.Limit(aPod("q", "", 1, runsFor(time.Minute))); ok != c.kept {
			t.Errorf("%s: trusted %t", name, ok)
		}
	}
}

// Gangs for which there are no places do not take the time of those for whom there are.
func TestHopelessGangsLeaveTime(t *testing.T) {
	m := newBackoffs[string](initialBackoff, maxBackoff)
	m.increase("a", noon, 10*time.Minute)
	if !m.backsOff("a", noon.Add(9*time.Minute)) || m.backsOff("a", noon.Add(10*time.Minute)) {
		t.Error("a search that takes long is repeated as soon as a short one")
	}
	pods := []*corev1.Pod{aPod("x", "a", 1), aPod("y", "a", 1, endsIn(time.Hour))}
	Projection{Limits: declared{}}.sortByEnd(pods, noon)
	if names := []string{pods[0].Name, pods[1].Name}; !slices.Equal(names, []string{"y", "x"}) {
		t.Errorf("%v", names)
	}
}

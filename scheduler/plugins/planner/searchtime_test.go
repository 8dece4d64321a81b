package planner

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
)

// Slow searches take a twentieth of the time at most, those of all namespaces together, and other namespaces wait for none of them.
func TestSlowSearchesTakeATwentieth(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := newSearchTime(clock, deviceShare)
	const took, span = 250 * time.Millisecond, time.Hour
	spent := map[string]time.Duration{}
	for end := clock.Now().Add(span); clock.Now().Before(end); clock.Step(10 * time.Millisecond) {
		for _, namespace := range []string{"a", "b", "c"} {
			if s.wait(namespace) == 0 {
				clock.Step(took)
				s.spend(namespace, took)
				spent[namespace] += took
			}
		}
		if s.wait("quiet") > 0 {
			t.Fatal("others wait")
		}
	}
	sum := spent["a"] + spent["b"] + spent["c"]
	if sum > span/deviceShare*11/10 || sum < span/deviceShare/2 {
		t.Errorf("slow searches took %s of %s: %v", sum, span, spent)
	}
	for namespace, share := range spent {
		if share < sum/6 || share > sum/2 {
			t.Errorf("namespace %s had %s of %s", namespace, share, sum)
		}
	}
	if s.spend("d", slowSearch-1); s.wait("d") > 0 {
		t.Error("what is found soon is not tried again at once")
	}
}

// However many gangs of a namespace take long to search in vain, that takes a quarter of the time, and no other namespace waits for it.
func TestSlowGangsTakeAQuarter(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	u := newSlowGangs(clock)
	const took, span = 200 * time.Millisecond, time.Hour
	of := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "noisy", Name: fmt.Sprint(i)} }
	const gangs = 100
	var again time.Duration
	for end := clock.Now().Add(span); clock.Now().Before(end); clock.Step(10 * time.Millisecond) {
		for i := range gangs {
			if u.wait(of(i), true) > 0 {
				continue
			}
			clock.Step(took)
			u.failed(of(i), took)
			again += took
		}
		if u.wait(types.NamespacedName{Namespace: "quiet", Name: "1"}, true) > 0 {
			t.Fatal("a gang waits of a namespace that was never searched")
		}
	}
	if most := span/placeShare*11/10 + gangs*took; again > most {
		t.Errorf("they took %s of %s", again, span)
	}
	if u.forget(of(1)); u.wait(of(1), true) > placeShare*took {
		t.Error("a gang whose search was fast waits for more than its turn")
	}
	clock.Step(maxWait)
	if u.failed(of(1), took); len(u.namespaces["noisy"].until) > 1 {
		t.Errorf("remembers %d gangs", len(u.namespaces["noisy"].until))
	}
}

// A few slow gangs keep no other gang of their namespace waiting. A crowd does: gangs of ever new names, each of which is slow the first time, take a quarter of
// the time, too.
func TestFirstSearchesOfACrowd(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	u := newSlowGangs(clock)
	const took, span = 200 * time.Millisecond, 10 * time.Minute
	name := 0
	next := func() types.NamespacedName { return types.NamespacedName{Namespace: "noisy", Name: fmt.Sprint(name)} }
	for ; name < crowd; name++ {
		if u.wait(next(), true) > 0 {
			t.Fatalf("gang %d waits for others", name)
		}
		clock.Step(took)
		u.failed(next(), took)
	}
	var spent time.Duration
	for end := clock.Now().Add(span); clock.Now().Before(end); clock.Step(10 * time.Millisecond) {
		if u.wait(next(), true) == 0 {
			clock.Step(took)
			u.failed(next(), took)
			spent += took
			name++
		}
		if u.wait(types.NamespacedName{Namespace: "quiet", Name: "1"}, true) > 0 {
			t.Fatal("a gang of another namespace waits")
		}
		if u.wait(types.NamespacedName{Namespace: "noisy", Name: "kept"}, false) > 0 {
			t.Fatal("who takes no turns waits")
		}
	}
	if least, most := span/placeShare/2, span/placeShare*11/10; spent < least || spent > most {
		t.Errorf("first searches took %s of %s", spent, span)
	}
	if got := u.wait(next(), true); got > placeShare*took {
		t.Errorf("the next gang waits for %s", got)
	}
}

// A gang whose search was slow and failed is not searched again before its namespace has its share of time, whatever happens.
func TestASlowSearchIsNotRepeatedAtOnce(t *testing.T) {
	const took = 200 * time.Millisecond
	d := newFixture()
	slow := func() { d.current.searched = took }
	d.try(&verdict{proven: true}, slow)
	d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "1"), nil)
	if d.clock.Step(placeShare*took - 1); len(d.woken) != 0 || d.Postponed(group, nil) == "" {
		t.Errorf("woken %d times, postponed: %q", len(d.woken), d.Postponed(group, nil))
	}
	if d.clock.Step(1); len(d.woken) != 1 || d.Postponed(group, nil) != "" {
		t.Errorf("woken %d times after its time, postponed: %q", len(d.woken), d.Postponed(group, nil))
	}
	d.try(&verdict{proven: true}, slow)
	if d.try(&verdict{postponed: time.Second}, nil); d.Postponed(group, nil) == "" {
		t.Error("an attempt without a search made the next one start at once")
	}
	d.clock.Step(time.Minute)
	d.try(&verdict{proven: true}, slow)
	if d.try(&verdict{}, nil); d.Postponed(group, nil) != "" {
		t.Error("postponed after a fast search")
	}
	d.Planner.claims = claimed{}
	if d.try(&verdict{proven: true}, slow); d.Postponed(group, nil) != "" {
		t.Error("a gang is postponed for which nodes are kept")
	}
}

// claimed is a ledger with a node for every gang.
type claimed struct{ unclaimed }

func (claimed) Nodes(types.NamespacedName) []string { return []string{"n"} }

// Pods with claims of devices wait while their namespace does, and others do not.
func TestPodsWithClaimsArePostponed(t *testing.T) {
	d := newFixture()
	d.devices.spend(group.Namespace, time.Second)
	claiming := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}}
	if d.Postponed(group, []*corev1.Pod{{}, claiming}) == "" || d.Postponed(group, []*corev1.Pod{{}}) != "" {
		t.Error("not those with claims wait")
	}
}

// In a crowd of slow gangs the others of the namespace take turns, but pods on their own, and gangs for which nodes are kept, do not.
func TestWhoTakesTurns(t *testing.T) {
	d := newFixture()
	for i := range crowd {
		d.slow.failed(types.NamespacedName{Namespace: group.Namespace, Name: fmt.Sprint(i)}, time.Second)
	}
	if d.Postponed(group, []*corev1.Pod{member(group.Name, 0)}) == "" {
		t.Error("a gang takes no turn")
	}
	if why := d.Postponed(types.NamespacedName{Namespace: group.Namespace, Name: "a"}, []*corev1.Pod{pod("a", "")}); why != "" {
		t.Errorf("a pod on its own: %s", why)
	}
	d.Planner.claims = claimed{}
	if why := d.Postponed(group, []*corev1.Pod{member(group.Name, 0)}); why != "" {
		t.Errorf("a gang for which nodes are kept: %s", why)
	}
}

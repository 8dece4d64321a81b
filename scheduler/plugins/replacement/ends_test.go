package replacement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/enginetest"
)

// counted makes the tracker's metrics count.
func (w *fixture) counted() *fixture {
	w.Register(metrics.NewKubeRegistry().MustRegister)
	return w
}

// holding compares the gauge of what is held.
func (w *fixture) holding(want float64) {
	w.t.Helper()
	if got, err := testutil.GetGaugeMetricValue(w.claimed); err != nil || got != want {
		w.t.Errorf("%v: %v holds are counted, want %v", err, got, want)
	}
}

// leaves has a member be deleted that stays on its node for now.
func (w *fixture) leaves(name string, after time.Duration) {
	pod := w.pods[name].DeepCopy()
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(after)))
	pod.Spec.SchedulingGroup = nil // as the engine sees it
	w.pods[name] = pod
	_ = w.store.Update(pod)
	w.see(pod)
}

// A member that does not go has been replaced; it does not count for another.
func TestALeavingMemberThatIsReplaced(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	w.run("a-2", "n2")
	w.leaves("a-2", 0)
	w.reserve(groupA, enginetest.Pod("a-3", "a"), "n1")
	w.run("a-3", "n1")
	w.see(w.pods["a-2"]) // its status changes, for example
	w.die("a-1")
	w.want("n1 for a-1 until 12:02")
}

// A scheduler that takes over does not know who replaced whom.
func TestMembersThatLeaveWhenAnotherTakesOver(t *testing.T) {
	for name, seen := range map[string]bool{"new": false, "present": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.begun = false
			if seen {
				w.run("a-2", "n2")
				w.run("a-9", "n2")
			}
			for _, member := range []string{"a-0", "a-1"} {
				w.run(member, "n1")
			}
			if !seen {
				for _, member := range []string{"a-2", "a-9"} {
					w.pods[member] = enginetest.Pod(member, "a", enginetest.On("n2"))
					_ = w.store.Add(w.pods[member])
				}
			}
			w.leaves("a-9", 0)
			w.leaves("a-2", time.Second) // the last one, so it is what the gang lacks
			w.want()
			w.die("a-2") // and a-9 never goes
			w.want("n2 for a-2 until 12:02")
			w.run("a-2", "n2", func(p *corev1.Pod) { p.UID = "again" })
			w.want()
			w.die("a-1")
			w.want("n1 for a-1 until 12:02")
		})
	}
}

func TestClaimsAreCounted(t *testing.T) {
	w := newFixture(t).counted()
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := enginetest.Pod("a-2", "a")
	_ = w.store.Add(pod)
	w.reserve(groupA, pod, "n2")
	w.unreserve(pod)
	w.want("n2 for a-2 until 12:02")
	w.holding(1)
	w.reserve(groupA, pod, "n2") // it has its place again
	w.holding(0)
	w.unreserve(pod)
	w.want("n2 for a-2 until 12:02")
	w.reserve(groupA, pod, "n1")
	w.run("a-2", "n1")
	w.holding(0)
	w.want()
}

// A member that could not be bound takes up its own place again, and leaves that of
// another one alone.
func TestAMemberStandsInForItself(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := enginetest.Pod("a-2", "a")
	_ = w.store.Add(pod)
	w.reserve(groupA, pod, "n2")
	w.unreserve(pod)
	w.die("a-1")
	w.want("n1 for a-1 until 12:02", "n2 for a-2 until 12:02")
	w.reserve(groupA, pod, "n2")
	w.run("a-2", "n2")
	w.want("n1 for a-1 until 12:02")
}

// One that was deleted before it could be bound is not remembered.
func TestAFailedBindingOfAPodThatIsGone(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := enginetest.Pod("a-2", "a")
	_ = w.store.Add(pod)
	w.reserve(groupA, pod, "n2")
	_ = w.store.Delete(pod)
	w.gone(pod)
	w.unreserve(pod)
	if len(w.failing) != 0 {
		t.Error("it is counted as failing indefinitely")
	}
	w.want("n2 for a-2 until 12:02") // for its replacement
}

// The places of a gang that has ended are gone through in no cycle after the next one.
func TestAGangThatHasEndedLeavesNothing(t *testing.T) {
	w := newFixture(t)
	for _, name := range []string{"a-0", "a-1", "a-2"} {
		w.run(name, "n1")
	}
	w.die("a-0")
	w.want("n1 for a-0 until 12:02")
	w.die("a-1")
	w.die("a-2")
	w.want()
	if len(w.loose)+len(w.slots)+len(w.places) > 0 {
		t.Errorf("%d places are left of a gang without members", len(w.slots))
	}
}

// An API server that goes away may have bound a pod of which it did not report that. Until it is back, no member has a place.
func TestPlacesWhoseBindingsWereNotAnswered(t *testing.T) {
	w := newFixture(t)
	for _, name := range []string{"a-0", "a-1", "a-2"} {
		pod := enginetest.Pod(name, "a")
		_ = w.store.Add(pod)
		w.reserve(groupA, pod, "n1")
	}
	for _, name := range []string{"a-0", "a-1", "a-2"} {
		w.unreserve(enginetest.Pod(name, "a"))
	}
	w.want()
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	w.want("n1 for a-2 until 12:02")
}

// Gangs that waited for a claim are activated when it ends because the gang needs less.
func TestAGangThatNeedsLess(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"a lower minimum": func(w *fixture) { w.gangs = gangA{required: 2, priority: 7} },
		"nothing":         func(w *fixture) { w.gangs = undeclared{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).counted()
			w.run("a-0", "n1")
			w.run("a-1", "n1")
			w.run("a-2", "n2")
			w.die("a-2")
			w.want("n2 for a-2 until 12:02")
			w.Touch(groupA)
			if w.parked.released != 0 {
				t.Error("activated though nothing has changed")
			}
			change(w)
			w.Touch(groupA)
			w.Touch(groupA)
			if w.parked.released != 1 {
				t.Errorf("activated %d times as the gang needs less, want once", w.parked.released)
			}
			w.want()
			w.holding(0)
			if w.parked.released != 2 {
				t.Errorf("activated %d times, want once more when the claim has ended", w.parked.released)
			}
			w.want()
			if w.parked.released != 2 {
				t.Error("activated again, for nothing")
			}
		})
	}
}

// undeclared are no gangs any more that places are to be held for.
type undeclared struct{ gangA }

func (undeclared) Required(types.NamespacedName) (count, priority int32, ok bool) { return 0, 0, false }

// Pods are cheap to delete and to create: no more is kept for a namespace than it ever had.
func TestNoMoreIsClaimedThanANamespaceHad(t *testing.T) {
	w := newFixture(t).counted()
	for range 6 {
		w.gangs = gangA{required: 10, priority: 7}
		w.run("a-0", "n1")
		w.run("a-1", "n1")
		w.run("a-2", "n2")
		for _, member := range []string{"a-1", "a-2"} {
			w.die(member)
		}
		for i := range 3 {
			name := "a-again-" + string(rune('a'+i))
			w.run(name, "n2", func(p *corev1.Pod) { p.UID = types.UID(name) })
			w.die(name)
		}
		held := 0
		for _, claims := range w.look() {
			held += len(claims)
		}
		if held > 3 {
			t.Fatalf("%d places are held for a namespace that never had more than 3", held)
		}
		w.clock.Step(time.Second)
	}
	w.holding(3)
}

// What is held costs no quota, so it is not only bounded by what a namespace had.
func TestClaimsOfANamespaceAreCapped(t *testing.T) {
	w := newFixture(t).counted()
	w.gangs = gangA{required: 4, priority: 7}
	w.args["gang-scheduler"] = Args{HoldTTL: DefaultArgs().HoldTTL, MaxPerNamespace: 2}
	for _, member := range []string{"a-0", "a-1", "a-2", "a-3"} {
		w.run(member, "n1", func(p *corev1.Pod) { p.Spec.SchedulerName = "gang-scheduler" })
	}
	for _, member := range []string{"a-1", "a-2", "a-3"} {
		w.die(member)
		w.clock.Step(time.Second)
	}
	w.want("n1 for a-3 until 12:02", "n1 for a-2 until 12:02") // those that were lost last
	w.holding(2)
	w.clock.Step(2 * time.Minute)
	w.want()
	w.holding(0)
}

package preemption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// watcher is a preemptor of which only the rooms are looked at.
type watcher struct {
	*Preemptor
	t        *testing.T
	clock    *clocktesting.FakeClock
	known    cache.Indexer
	woken    []string
	released int
}

func watch(t *testing.T) *watcher {
	w := &watcher{t: t, clock: clocktesting.NewFakeClock(noon), known: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	w.Preemptor = New(w, nil, claims.NewLedger(w, w, w.clock, audience.Hidden), w, &suspend.Suspender{}, nil, nil, w.clock)
	return w
}

// Framework, Activate, Pod, Lacking and Scheduled are what is needed of the engine; Wake and
// Released of the planner.
func (w *watcher) Framework() fwk.Handle { return nil }

func (w *watcher) Activate(map[string]*corev1.Pod) {}

func (w *watcher) Lacking(types.NamespacedName) int { return 0 }

func (w *watcher) Scheduled(types.NamespacedName) []*corev1.Pod { return nil }

func (w *watcher) Pod(pod *corev1.Pod) *corev1.Pod {
	obj, known, err := w.known.GetByKey(pod.Namespace + "/" + pod.Name)
	if err != nil || !known || obj.(*corev1.Pod).UID != pod.UID {
		return nil
	}
	return obj.(*corev1.Pod)
}

func (w *watcher) Wake(group types.NamespacedName) { w.woken = append(w.woken, group.Name) }

func (w *watcher) NoVictims(types.NamespacedName, bool) {}

func (w *watcher) MayNotPreempt(types.NamespacedName) {}

func (w *watcher) VictimsUnknown(types.NamespacedName, time.Duration) {}

func (w *watcher) Released() { w.released++ }

// withheld is what a gang may not use while these pods are on n1.
func (w *watcher) withheld(group types.NamespacedName, priority int32, running ...*corev1.Pod) []claims.Claim {
	nodes := internalcache.NewSnapshot(running, []*corev1.Node{aNode("n1", 4)}).NodeInfos()
	return w.claims.Withheld(nodes, group, []*corev1.Pod{aPod("o", "", 1, ranked(priority))}, nil)
}

func (w *watcher) knows(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		if err := w.known.Update(pod); err != nil {
			w.t.Fatal(err)
		}
	}
}

// room is for member p of a gang on n1, where v has to go.
func (w *watcher) room() *reservation {
	w.t.Helper()
	p, v := aPod("p", "", 2, ranked(100)), aPod("v", "n1", 1)
	w.knows(p, v)
	r := newReservation(cause{key: types.NamespacedName{Namespace: "ns", Name: "labels:a"}, priority: 100, pods: []*corev1.Pod{p}}, map[string][]*corev1.Pod{"n1": {p}}, w.clock.Now())
	r.victims[v.UID], r.jobs[gang.Identity{Namespace: "ns", UID: "job"}], r.text, r.timeout = v, true, "preempts 1 pod", time.Minute
	w.open(r)
	return r
}

// after lets time pass.
func (w *watcher) after(d time.Duration) {
	w.clock.Step(d)
	w.sweep(klog.Background())
}

func (w *watcher) isOpen(r *reservation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reservations[r.key] == r
}

// A victim that has gone is on the snapshot of an attempt that began before: it does not stay, and no other pod has to go for it.
func TestAVictimThatHasGoneDoesNotStay(t *testing.T) {
	w := watch(t)
	v := w.room().victims["v"]
	pl, cluster := &Plugin{preemptor: w.Preemptor, args: DefaultArgs()}, newQuery([]*corev1.Node{aNode("n1", 4)}, []*corev1.Pod{v}, 1, 1).Cluster
	is := func(when string, want occupants, h occupants) {
		if len(h.staying) != len(want.staying) || len(h.leaving) != len(want.leaving) || len(h.gone) != len(want.gone) {
			t.Errorf("%s: %d pods stay, %d leave, %d have gone", when, len(h.staying), len(h.leaving), len(h.gone))
		}
	}
	is("while it leaves", occupants{leaving: []*corev1.Pod{v}}, pl.departures(nil).occupants(cluster, 100))
	w.Gone(v)
	is("after it has gone", occupants{gone: []*corev1.Pod{v}}, pl.departures(nil).occupants(cluster, 100))
	again := v.DeepCopy() // it was called back on its way to n1
	again.Spec.NodeName = "n2"
	elsewhere := newQuery([]*corev1.Node{aNode("n2", 4)}, []*corev1.Pod{again}, 1, 1).Cluster
	is("with another node", occupants{staying: []*corev1.Pod{again}}, pl.departures(nil).occupants(elsewhere, 100))
}

func TestWhatIsKeptOfANode(t *testing.T) {
	w := watch(t)
	r := w.room()
	b, v := types.NamespacedName{Namespace: "ns", Name: "labels:b"}, r.victims["v"]
	claimed := w.withheld(b, 100, v)
	if len(claimed) != 1 || claimed[0].Node != "n1" || claimed[0].Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 || claimed[0].Why.For(audience.Reader{}) != "being cleared for gang ns/a" {
		t.Errorf("while v leaves, 1 of 2 cpus is kept: %+v", claimed)
	}
	if n := len(w.withheld(r.key, 100, v)) + len(w.withheld(types.NamespacedName{}, 101, v)); n != 0 {
		t.Error("it is kept from whom it is for, or from a higher priority")
	}
	w.Gone(v)
	claimed = w.withheld(b, 0)
	if len(claimed) != 1 || claimed[0].Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2 {
		t.Errorf("when v has left, 2 cpus are kept: %+v", claimed)
	}
	if len(w.woken) != 1 || w.claims.Progress(r.key) != "preempts 1 pod" || len(w.claims.Nodes(r.key)) != 1 || !w.claims.Suspends(gang.Identity{Namespace: "ns", UID: "job"}) {
		t.Errorf("woken %v", w.woken)
	}
	w.used(aPod("p", "", 1, func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &r.key.Name} }), "n1")
	if w.isOpen(r) || w.released != 1 || w.claims.Suspends(gang.Identity{Namespace: "ns", UID: "job"}) || w.claims.Progress(r.key) != "" {
		t.Error("it is still kept when it is used")
	}
}

// A reservation ends before its victims were evicted. Another that counts on them ends, too, unless they are on their way out.
func TestAReservationThatAnotherCountsOn(t *testing.T) {
	for _, c := range []struct {
		begun bool
		how   string
		stays bool // the victim does
	}{{false, endGone, true}, {false, endRefused, true}, {true, endGone, false}, {true, endRefused, true}} {
		w := watch(t)
		r := w.room()
		r.units, r.begun = []Unit{{Pods: []*corev1.Pod{r.victims["v"]}}}, c.begun
		q := aPod("q", "", 1, ranked(100))
		w.knows(q)
		other := newReservation(cause{key: types.NamespacedName{Namespace: "ns", Name: "labels:b"}, priority: 100, pods: []*corev1.Pod{q}}, map[string][]*corev1.Pod{"n1": {q}}, w.clock.Now())
		other.victims["v"] = r.victims["v"]
		w.open(other)
		w.end(r, c.how)
		if w.isOpen(other) == c.stays || (len(w.woken) > 0) != c.stays {
			t.Errorf("%+v: the other is open: %v, woken %v", c, w.isOpen(other), w.woken)
		}
	}
}

// The victims of a reservation that has ended stay, unless they are being evicted.
func TestWhoLeavesForAReservationThatHasEnded(t *testing.T) {
	for _, begun := range []bool{false, true} {
		w := watch(t)
		r := w.room()
		v := r.victims["v"]
		r.units, r.begun = []Unit{{Pods: []*corev1.Pod{v}}}, begun
		w.end(r, endReplaced)
		pl, cluster := &Plugin{preemptor: w.Preemptor, args: DefaultArgs()}, newQuery([]*corev1.Node{aNode("n1", 4)}, []*corev1.Pod{v}, 1, 1).Cluster
		if h := pl.departures(r).occupants(cluster, 100); (len(h.leaving) == 1) != begun || (len(h.staying) == 0) != begun {
			t.Errorf("begun %v: %d pods leave, %d stay", begun, len(h.leaving), len(h.staying))
		}
	}
}

// An attempt counts on victims that stay after all.
func TestAnAttemptThatCountsOnVictimsThatStay(t *testing.T) {
	w := watch(t)
	before, q := w.withdrawals(), aPod("q", "", 1, ranked(100))
	w.knows(q)
	c := cause{key: types.NamespacedName{Namespace: "ns", Name: "labels:b"}, pods: []*corev1.Pod{q}}
	r := w.room()
	r.units = []Unit{{Pods: []*corev1.Pod{r.victims["v"]}}}
	w.end(r, endRefused)
	w.woken = nil
	if w.recordResult(c, resultNone, before); len(w.woken) > 0 {
		t.Errorf("woken %v, which counts on nobody", w.woken)
	}
	if w.recordResult(c, resultWaits, before); len(w.woken) != 1 {
		t.Errorf("woken %v", w.woken)
	}
	w.known = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if w.after(time.Second); len(w.awaiting) > 0 {
		t.Error("it is remembered when it is gone")
	}
}

// Members above the minimum are placed one by one: each ends its part, and what is kept for the others stays.
func TestMembersThatArePlacedOneByOne(t *testing.T) {
	w := watch(t)
	r := w.room()
	member := func(name string) *corev1.Pod {
		return aPod(name, "", 2, ranked(100), func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &r.key.Name} })
	}
	p, q := member("p"), member("q")
	w.knows(p, q)
	r.singly, r.pods, r.assigned = true, []*corev1.Pod{p, q}, map[string][]*corev1.Pod{"n1": {p}, "n2": {q}}
	w.open(r)
	w.used(member("other"), "n3") // for which nothing is freed
	if nodes := w.claims.Nodes(r.key); len(nodes) != 2 {
		t.Errorf("room is kept on %v", nodes)
	}
	w.used(p, "n2") // in the place of q, which is to have that of p
	if nodes := w.claims.Nodes(r.key); !w.isOpen(r) || len(nodes) != 1 || nodes[0] != "n1" || !w.claims.Suspends(gang.Identity{Namespace: "ns", UID: "job"}) {
		t.Errorf("room is kept on %v", nodes)
	}
	if waiting := r.waiting(); len(waiting) != 1 || waiting[0].Name != "q" || len(r.pods) != 2 {
		t.Errorf("%v wait", waiting)
	}
	w.used(member("other"), "n1") // in the place of q
	if nodes := w.claims.Nodes(r.key); w.isOpen(r) || len(nodes) != 0 {
		t.Errorf("room is kept on %v", nodes)
	}
}

func TestHowRoomEnds(t *testing.T) {
	t.Run("who it is for is gone", func(t *testing.T) {
		w := watch(t)
		r := w.room()
		w.after(time.Second)
		if !w.isOpen(r) {
			t.Fatal("ended at once")
		}
		w.knows(aPod("p", "n2", 2))
		w.after(time.Second)
		if w.isOpen(r) || len(w.failed) != 0 {
			t.Error("it is still kept")
		}
	})
	t.Run("the victim does not go", func(t *testing.T) {
		w := watch(t)
		r := w.room()
		w.knows(aPod("v", "n1", 1, func(p *corev1.Pod) { at := metav1.NewTime(noon.Add(30 * time.Second)); p.DeletionTimestamp = &at }))
		w.after(89 * time.Second)
		if !w.isOpen(r) {
			t.Fatal("ended before its time: 30s of grace and 1m")
		}
		w.after(2 * time.Second)
		if w.isOpen(r) || len(w.woken) != 1 {
			t.Error("it is still kept")
		}
	})
	t.Run("it is not used", func(t *testing.T) {
		w := watch(t)
		for i, backoff := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
			r := w.room()
			w.Gone(r.victims["v"])
			w.woken = nil
			w.after(useWithin)
			if !w.isOpen(r) {
				t.Fatal("ended before its time")
			}
			w.after(time.Second)
			if w.isOpen(r) || len(w.woken) != 1 {
				t.Errorf("it is still kept, or none is woken: %v", w.woken)
			}
			if b := w.failed[r.key]; b == nil || b.until.Sub(w.clock.Now()) != backoff {
				t.Errorf("the %d. time: %+v, want a backoff of %s", i+1, b, backoff)
			}
			w.after(backoff)
			if len(w.woken) != 2 {
				t.Errorf("not tried again after the backoff: %v", w.woken)
			}
		}
		w.knows(aPod("p", "n2", 2))
		w.after(time.Second)
		if len(w.failed) != 0 {
			t.Error("a failed attempt is remembered of who does not wait any more")
		}
	})
	t.Run("the victim went before", func(t *testing.T) {
		w := watch(t)
		r := w.room()
		delete(w.reservations, r.key)
		if err := w.known.Delete(r.victims["v"]); err != nil {
			t.Fatal(err)
		}
		w.open(r)
		if r.cleared.IsZero() || len(w.woken) != 1 {
			t.Error("it is waited for")
		}
	})
}

package preemption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
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
	w.Preemptor = New(nil, w.clock)
	w.pods = corelisters.NewPodLister(w.known)
	w.Wake = func(group types.NamespacedName) { w.woken = append(w.woken, group.Name) }
	w.Released = func() { w.released++ }
	return w
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
func (w *watcher) room() *room {
	w.t.Helper()
	p, v := aPod("p", "", 2, ranked(100)), aPod("v", "n1", 1)
	w.knows(p, v)
	info, err := framework.NewPodInfo(aPod("p", "", 2, ranked(100)))
	if err != nil {
		w.t.Fatal(err)
	}
	r := &room{
		key: types.NamespacedName{Namespace: "ns", Name: "labels:a"}, priority: 100, pods: []*corev1.Pod{p}, seats: map[string][]fwk.PodInfo{"n1": {info}},
		victims: map[types.UID]*corev1.Pod{v.UID: v}, jobs: map[types.UID]bool{"job": true}, text: "preempts 1 pod", timeout: time.Minute, since: w.clock.Now(),
	}
	w.open(r)
	return r
}

// after lets time pass.
func (w *watcher) after(d time.Duration) {
	w.clock.Step(d)
	w.sweep(klog.Background())
}

func (w *watcher) isOpen(r *room) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rooms[r.key] == r
}

func TestWhatIsKeptOfANode(t *testing.T) {
	w := watch(t)
	r := w.room()
	ofPriority := func(priority int32) []*corev1.Pod { return []*corev1.Pod{aPod("o", "", 1, ranked(priority))} }
	claims := w.KeptFrom(types.NamespacedName{Namespace: "ns", Name: "labels:b"}, ofPriority(100))
	if len(claims) != 1 || claims[0].Node != "n1" || claims[0].Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 || claims[0].Why != "being cleared for gang ns/a" {
		t.Errorf("while v leaves, 1 of 2 cpus is kept: %+v", claims)
	}
	if n := len(w.KeptFrom(r.key, ofPriority(100))) + len(w.KeptFrom(types.NamespacedName{}, ofPriority(101))); n != 0 {
		t.Error("it is kept from whom it is for, or from a higher priority")
	}
	w.Gone(r.victims["v"])
	claims = w.KeptFrom(types.NamespacedName{Namespace: "ns", Name: "labels:b"}, ofPriority(0))
	if len(claims) != 1 || claims[0].Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2 {
		t.Errorf("when v has left, 2 cpus are kept: %+v", claims)
	}
	if len(w.woken) != 1 || w.Outlook(r.key) != "preempts 1 pod" || len(w.KeptFor(r.key)) != 1 || !w.Keeps("job") {
		t.Errorf("woken %v", w.woken)
	}
	w.used(klog.Background(), aPod("p", "", 1, func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &r.key.Name} }))
	if w.isOpen(r) || w.released != 1 || w.Keeps("job") || w.Outlook(r.key) != "" {
		t.Error("it is still kept when it is used")
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
		if w.isOpen(r) || len(w.vain) != 0 {
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
				t.Errorf("it is still kept, or nobody is told: %v", w.woken)
			}
			if b := w.vain[r.key]; b == nil || b.until.Sub(w.clock.Now()) != backoff {
				t.Errorf("the %d. time: %+v, want a backoff of %s", i+1, b, backoff)
			}
			w.after(backoff)
			if len(w.woken) != 2 {
				t.Errorf("not tried again after the backoff: %v", w.woken)
			}
		}
		w.knows(aPod("p", "n2", 2))
		w.after(time.Second)
		if len(w.vain) != 0 {
			t.Error("what was in vain is remembered of who does not wait any more")
		}
	})
	t.Run("the victim went before", func(t *testing.T) {
		w := watch(t)
		r := w.room()
		delete(w.rooms, r.key)
		if err := w.known.Delete(r.victims["v"]); err != nil {
			t.Fatal(err)
		}
		w.open(r)
		if r.cleared.IsZero() || len(w.woken) != 1 {
			t.Error("it is waited for")
		}
	})
}

package belowmin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
)

const noRoom = "it needs 1 member with 2 cpu, and the node that it may use has 1 cpu free of 4"

// partial is a gang of which two of three members are bound at its start, and it is proven that the third can have no place.
func partial(t *testing.T, arguments string, jobs ...runtime.Object) *fixture {
	w := newFixture(t, arguments, jobs...)
	w.short = &planner.Shortfall{Placed: 2, Why: noRoom}
	var owned []func(*corev1.Pod)
	if len(jobs) > 0 {
		owned = append(owned, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
	}
	w.pod("a-0", 0, 1, owned...)
	w.pod("a-1", 0, 1, owned...)
	w.pod("a-2", 0, -1, owned...)
	return w
}

// What is left of the grace is not waited for.
func TestAGangThatCannotBeCompletedIsTakenBackAtOnce(t *testing.T) {
	w := partial(t, short)
	w.after(0)
	w.wantDid("patch pods/status a-0", "delete pods a-0", "patch pods/status a-1", "delete pods a-1")
	w.wantEvents("GangRolledBack 2 of 3 members that the gang needs have places, and it was never whole: the others cannot have any now: " + noRoom + ". All give their places back")

	w = partial(t, short, tfjob("llama", nil))
	w.after(0)
	w.wantDid("patch tfjobs llama")
}

// It is proven only later, and no event shows that.
func TestAProofIsLookedFor(t *testing.T) {
	w := partial(t, `{"grace":"1h","startGrace":"1h"}`)
	proof := w.short
	w.short = nil
	w.after(0)
	w.wantDid()
	w.short = proof
	again := make(chan gang.Key, 1)
	go func() {
		key, _ := w.queue.Get()
		again <- key
	}()
	defer w.queue.ShutDown()
	select {
	case key := <-again:
		if key != keyA {
			t.Fatalf("%s is looked at", key)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the gang is not reconciled")
	}
	w.after(0)
	w.wantEvents("GangRolledBack")
}

func TestWhomAProofDoesNotConcern(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"was whole": func(w *fixture) {
			w.short = nil
			w.required = 2
			w.after(0)
			w.required = 3
			w.short = &planner.Shortfall{Placed: 2}
		},
		"lost a member": func(w *fixture) { w.pods[2].CreationTimestamp = metav1.NewTime(noon.Add(9 * time.Second)) },
		"was whole before it was seen": func(w *fixture) {
			for _, member := range []types.UID{"a-0", "a-1", "a-9"} { // a-2 replaces the last one
				w.bindingStarted(groupA, member)
				w.bindingEnded(groupA, member, true)
			}
		},
		"has its minimum":                       func(w *fixture) { w.required = 2 },
		"is to be ignored":                      func(w *fixture) { w.note = "ignore" },
		"got another place since":               func(w *fixture) { w.short.Placed = 1 },
		"has members on their way":              func(w *fixture) { w.bindingStarted(groupA, "a-2") },
		"has it not proven":                     func(w *fixture) { w.short = nil },
		"ended while members waited":            func(w *fixture) { w.completed = 1 },
		"is bound by the API server":            func(w *fixture) { w.bindLate("a-2") },
		"is of long ago, with a raised minimum": func(w *fixture) { w.clock.Step(time.Hour) },
	} {
		w := partial(t, `{"grace":"1h","startGrace":"10s"}`)
		change(w)
		w.after(0)
		w.after(2 * pollInterval)
		if did, got := w.did(), w.events(); len(did) > 0 || len(got) > 0 {
			t.Errorf("one that %s: did %q, events %q", name, did, got)
		}
	}
}

// bindLate binds a member of which the informer does not know it yet.
func (w *fixture) bindLate(name string) {
	pods := w.client.CoreV1().Pods("ns")
	pod, err := pods.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = "n1"
	if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ns"); err != nil {
		w.t.Fatal(err)
	}
}

// What is refused at once would be refused again at once.
func TestARefusalIsNotRepeatedAtOnce(t *testing.T) {
	w := partial(t, short, tfjob("llama", nil))
	calls := 0
	w.dynamic.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		calls++
		return true, nil, apierrors.NewForbidden(tfjobs.GroupResource(), "llama", nil)
	})
	w.after(0)
	if calls != 1 {
		t.Fatalf("called %d times", calls)
	}
	w.after(time.Second)
	w.after(10 * time.Second)
	if calls != 1 {
		t.Errorf("called %d times within the grace", calls)
	}
	w.after(10 * time.Second) // the grace, doubled
	if calls != 2 {
		t.Errorf("called %d times after the grace", calls)
	}
}

// The node was deleted while members were being bound to it: the API server does not look.
func TestMembersOnANodeThatIsGone(t *testing.T) {
	gone := func(pod *corev1.Pod) { pod.Spec.NodeName = "n2" }
	replaced := func(created, bound int) func(*fixture) {
		return func(w *fixture) {
			w.gone = nil
			w.after(0)
			w.pods = w.pods[:2]
			w.pod("a-9", created, bound, gone)
			w.gone = map[string]bool{"n2": true}
		}
	}
	for name, c := range map[string]struct {
		change func(*fixture)
		taken  bool
	}{
		"a replacement is":                       {replaced(2, 3), false},
		"a replacement is, of a moment ago":      {replaced(1, 1), false},
		"a replacement is, before the scheduler": {func(w *fixture) { w.pods = w.pods[:2]; w.pod("a-9", 2, 3, gone) }, false},
		"its members are seen one after the other": {func(w *fixture) {
			all := w.pods
			w.pods, w.required, w.gone = all[:2], 2, nil
			w.after(0)
			w.pods, w.required = all, 3
			w.after(0)
			w.gone = map[string]bool{"n2": true}
		}, true},
		"at its start": {func(*fixture) {}, true},
		"a watch is late": {func(w *fixture) {
			w.gone = nil
			w.after(0)
			w.clock.Step(time.Second)
			w.gone = map[string]bool{"n2": true}
		}, true},
		"it was whole": {func(w *fixture) {
			w.gone = nil
			w.after(0)
			w.clock.Step(time.Minute)
			w.gone = map[string]bool{"n2": true}
		}, false},
		"it ran while no scheduler did":     {func(w *fixture) { w.clock.Step(time.Hour) }, false},
		"others are enough":                 {func(w *fixture) { w.required = 2 }, false},
		"others are on their way":           {func(w *fixture) { w.bindingStarted(groupA, "a-3") }, false},
		"the node exists by the API server": {func(w *fixture) { w.node("n2") }, false},
		"it is deleted by the API server":   {func(w *fixture) { w.delete("a-2") }, false},
		"its policy is to be ignored":       {func(w *fixture) { w.note = "ignore" }, false},
	} {
		w := newFixture(t, `{"grace":"1h","startGrace":"10s"}`)
		w.gone = map[string]bool{"n2": true}
		w.pod("a-0", 0, 1)
		w.pod("a-1", 0, 1)
		w.pod("a-2", 0, 1, gone)
		c.change(w)
		w.after(0)
		if !c.taken {
			w.after(stabilizationWindow)
			if did := w.did(); len(did) > 0 {
				t.Errorf("%s: did %q", name, did)
			}
			continue
		}
		w.wantDid("patch pods/status a-0", "delete pods a-0", "patch pods/status a-1", "delete pods a-1", "patch pods/status a-2", "delete pods a-2")
		w.wantEvents("GangRolledBack 2 of 3 members that the gang needs have places, and it was never whole: the others cannot have any now: 1 of the 3 that are bound is on nodes that are gone: n2")
	}
}

// update and delete change a pod by the API server, where the informer is late.
func (w *fixture) update(pod *corev1.Pod) {
	if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ns"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) delete(name string) {
	if err := w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) node(name string) {
	if err := w.client.Tracker().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

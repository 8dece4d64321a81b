package belowmin

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// The watch is late: the API server knows that no member waits any more.
func TestPlacesAreNotTakenOnHearsay(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"it is bound by now": func(w *fixture) {
			bound := w.pods[2].DeepCopy()
			bound.Spec.NodeName = "n1"
			w.update(bound)
		},
		"it is gone":        func(w *fixture) { w.delete("a-2") },
		"it is another one": func(w *fixture) { w.pods[2] = w.pods[2].DeepCopy(); w.pods[2].UID = "older" },
	} {
		for _, args := range []string{short, `{"grace":"10s","startGrace":"10s","belowMin":"evict"}`} {
			w := newFixture(t, args)
			w.pod("a-0", 0, 1)
			w.pod("a-1", 0, 1)
			w.pod("a-2", 0, -1)
			change(w)
			w.after(0)
			w.after(10 * time.Second)
			if did, got := w.did(), w.events(); len(did) > 0 || len(got) > 0 || w.isEvicting(groupA) {
				t.Errorf("%s: did %q, events %q", name, did, got)
			}
		}
	}
}

// Whoever creates pods chooses how many members wait: one that waits proves that a gang of all is not whole. Many are listed.
func TestFewMembersAreRead(t *testing.T) {
	for _, c := range []struct{ required, want, lists int32 }{{102, 1, 0}, {100, 3, 0}, {50, 0, 1}} {
		w := newFixture(t, short)
		w.required = c.required
		w.pod("a-0", 0, 1)
		w.pod("a-1", 0, 1)
		for i := range 100 {
			w.pod(fmt.Sprintf("w-%02d", i), 0, -1)
		}
		var read, lists int32
		w.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { read++; return false, nil, nil })
		w.client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { lists++; return false, nil, nil })
		w.after(0)
		w.after(10 * time.Second)
		if w.wantEvents("GangRolledBack"); read != c.want || lists != c.lists {
			t.Errorf("of %d required, %d pods were read and %d times listed, want %d and %d", c.required, read, lists, c.want, c.lists)
		}
	}
}

// Nothing is begun while the API server is away; when it is back, it is done.
func TestPlacesAreTakenWhenTheServerIsBack(t *testing.T) {
	w := newFixture(t, short)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	away := true
	w.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, (*corev1.Pod)(nil), errors.New("connection refused")
	})
	w.after(0)
	w.clock.Step(10 * time.Second)
	if err := w.reconcile(t.Context(), keyA); err == nil {
		t.Error("it does not report that the server is away")
	}
	w.wantDid()
	if w.isEvicting(groupA) {
		t.Error("members are kept out though nothing was begun")
	}
	away = false
	w.after(time.Second)
	w.wantDid("patch pods/status a-0", "delete pods a-0", "patch pods/status a-1", "delete pods a-1")
}

// The event has the server's words.
func TestWhyAMemberIsNotBoundIsReported(t *testing.T) {
	withCondition := func(reason, message string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	w := newFixture(t, short)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, -1, withCondition(corev1.PodReasonUnschedulable, "other members come first"))
	w.pod("a-2", 0, -1, withCondition(corev1.PodReasonSchedulerError, "the server says no"))
	w.after(0)
	w.after(10 * time.Second)
	w.wantEvents("for 10s, pod a-2 could not be bound: the server says no. All give their places back")
}

package binding

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/scheduler/engine"
)

func TestBackoff(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	group := types.NamespacedName{Namespace: "ns", Name: "labels:a"}
	over := 0
	var gone *corev1.Pod
	b := newBackoff(clock, func(pod *corev1.Pod) bool { return pod != gone }, func(types.NamespacedName, *corev1.Pod) { over++ })
	pod := enginetest.Pod("a-0", "a")
	b.fail(group, pod)
	if b.active(group) {
		t.Error("it waits after the first failure")
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		b.fail(group, pod)
		clock.Step(want - time.Millisecond)
		if !b.active(group) || over != i {
			t.Errorf("after failure %d it does not wait for %s", i+2, want)
		}
		clock.Step(time.Millisecond)
		if b.active(group) || over != i+1 {
			t.Errorf("after failure %d it waits for longer than %s", i+2, want)
		}
	}
	// Several members fail at once: the gang waits for the longest.
	b.fail(group, pod)
	other := enginetest.Pod("a-1", "a")
	b.fail(group, other)
	b.fail(group, other)
	clock.Step(5 * time.Second)
	if !b.active(group) {
		t.Error("it does not wait for the longest of two")
	}
	clock.Step(5 * time.Second)
	b.succeed(pod.UID)
	b.fail(group, pod)
	if b.active(group) {
		t.Error("a failure counts after a success")
	}
	gone = other
	b.fail(group, other)
	if b.active(group) {
		t.Error("it waits for a member that is gone")
	}
	before := over
	clock.Step(maxBackoff)
	if over != before+1 {
		t.Error("a member that was refused before that one was gone is not tried again")
	}
	clock.Step(failureTTL + time.Second)
	b.fail(group, other)
	if len(b.failures) != 1 {
		t.Errorf("%d failures are remembered indefinitely", len(b.failures)-1)
	}
}

// A member that can never be bound is not tried as fast as can be, and its gang
// comes together as soon as it can.
func TestABindingThatFailsForAWhile(t *testing.T) {
	handle := engine.NewHandle()
	b := New(handle, unparked{})
	c := enginetest.Start(t, nil, enginetest.Plugin{Name: Name, New: handle.Binding(b.NewPlugin)})
	var tries atomic.Int32
	var mended atomic.Bool
	c.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
		if !ok || binding.Name != "a-1" || mended.Load() {
			return false, nil, nil
		}
		tries.Add(1)
		return true, nil, errors.New("the server says no")
	})
	c.Create(enginetest.Node("n1", 2))
	c.Group("a", 2, 0)
	c.Create(enginetest.Pod("a-0", "a"), enginetest.Pod("a-1", "a"))
	c.Wait("it was tried three times", func() bool { return tries.Load() == 3 })
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n := tries.Load(); n > 3 {
			t.Fatalf("tried %d times: it does not wait", n)
		}
	}
	mended.Store(true)
	c.WaitPlaced("a-0", "a-1")
}

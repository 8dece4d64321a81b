package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
)

// runningFor has the kubelet end a pod after a while.
func runningFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(d / time.Second)) }
}

// Room goes to the gang whose response ratio is highest, not to the one that came first, nor to the one that was tried last.
func TestRoomGoesByResponseRatio(t *testing.T) {
	r := newRig(t)
	r.startWhole(aging.Name)
	r.node("n1", 4)
	runs := r.gangOf("runs", 4)
	r.waitPlaced(runs...)
	for _, gang := range []struct {
		name string
		runs time.Duration
	}{{"long", 100 * time.Hour}, {"short", 2 * time.Minute}, {"longer", 200 * time.Hour}} {
		names := r.gangOf(gang.name, 4, runningFor(gang.runs))
		r.waitMessage(names[0], "its gang needs")
	}
	began := time.Now() // who was tried within the last second is left alone for so long
	poll.Until(t, "all have rested", func() bool { return time.Since(began) > 2*time.Second })
	r.delete(runs...)
	r.waitPlaced("short-0", "short-1", "short-2", "short-3")
	if n := r.placed("long-0", "longer-0"); n != 0 {
		t.Errorf("%d members of longer gangs have nodes", n)
	}
}

// A gang teaches the scheduler how long its like run, when all of it has succeeded.
func TestRuntimesAreLearnt(t *testing.T) {
	r := newRig(t)
	r.startWhole()
	r.node("n1", 4)
	names := r.gangOf("llama", 2)
	r.waitPlaced(names...)
	next := []*corev1.Pod{r.pod("llama-2", DefaultName, labelled("llama", 2)), r.pod("llama-3", DefaultName, labelled("llama", 2))}
	if got := r.ranking.Expect(next); got.Basis != order.Unknown {
		t.Errorf("before one has ended, it expects %+v", got)
	}
	for _, name := range names {
		r.change(name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	}
	poll.Until(t, "a runtime that is learnt", func() bool { return r.ranking.Expect(next).Basis == order.Learnt })
}

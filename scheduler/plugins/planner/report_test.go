package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Without a proof every member still has a message on its gang, with the engine's message.
func TestAGangThatTheEngineRefusesIsReported(t *testing.T) {
	r := newRig(t, withPicky("n1"))
	r.node("n1", "nvidia.com/gpu", "4")
	r.node("n2", "nvidia.com/gpu", "2")
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "2"), member("g", 1, "nvidia.com/gpu", "2"))
	reason := r.parked("g")
	if reason.Finding.Code != answer.FitsNotPlaced || reason.Required != 2 || reason.Fit != 1 || reason.NextAttempt.IsZero() || !strings.Contains(reason.Retry, "after any change") {
		t.Errorf("reason %+v", reason)
	}
	for i := range 2 {
		poll.Until(r, "every member has the same message", func() bool {
			text := r.message(fmt.Sprintf("g-%d", i))
			return strings.HasPrefix(text, "0/2 nodes are available: 1 of the 2 members that its gang needs fit: pod g-") && strings.Contains(text, "not this one")
		})
	}
}

// For a gang without a placement and without a proof, the results of the planner and of the engine are reported.
func TestWithoutAProofBothAreReported(t *testing.T) {
	r := newRig(t)
	n := r.node("n1", "nvidia.com/gpu", "4")
	n.Status.Conditions[0].Status = corev1.ConditionFalse // not Ready, and no taint yet: the engine would go there
	n.Spec.Taints = []corev1.Taint{{Key: "keep", Value: "off", Effect: corev1.TaintEffectNoSchedule}}
	r.must(r.api.Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
	r.gang("g", 1)
	p := member("g", 0, "cpu", "1")
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}}
	r.create(p)
	reason := r.parked("g")
	if reason.Required != 1 || reason.Fit != 0 || reason.Finding.Message == "" {
		t.Errorf("reason %+v", reason)
	}
	poll.Until(r, "the member has the message", func() bool {
		return strings.Contains(r.message("g-0"), "0 of the 1 members that its gang needs fit: ")
	})
}

// A member above the minimum has a message of its own, and the gang is not reported to wait.
func TestAMemberAboveTheMinimumIsReported(t *testing.T) {
	r := newRig(t)
	r.node("n1", "cpu", "2")
	r.gang("g", 2)
	r.create(member("g", 0, "cpu", "1"), member("g", 1, "cpu", "1"))
	r.bound("g-0", "g-1")
	r.create(member("g", 2, "cpu", "1"))
	poll.Until(r, "it is reported", func() bool {
		return strings.Contains(r.message("g-2"), "its gang has its minimum, with 2 members placed, and there is no room for more: ")
	})
	if reason, fresh, reported := r.reasons.TakeReport(types.NamespacedName{Namespace: "default", Name: "g"}); fresh || reported && !reason.AboveMin {
		t.Errorf("the gang is reported to wait: %+v", reason)
	}
}

// Numbers that change at every attempt cost no write at every attempt: count based.
func TestAFlappingReasonIsNotWritten(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	r := startRig(t, true, clock)
	r.node("n1", "cpu", "64")
	filler := pod("filler", "", "cpu", "15")
	filler.Spec.NodeName = "n1"
	r.create(filler)
	poll.Until(r, "the engine knows the pod", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 1 })
	const members = 5
	r.gang("g", members)
	for i := range members {
		r.create(member("g", i, "cpu", "10"))
	}
	r.parked("g")
	first := r.message("g-0")
	group := types.NamespacedName{Namespace: "default", Name: "g"}
	patches := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.writes["patch pods/status"]
	}
	poll.Until(r, "all members have the message", func() bool { return patches() == members })
	const attempts = 20
	for i := range attempts {
		used := pod(fmt.Sprintf("used-%d", i), "", "cpu", "1")
		used.Spec.NodeName = "n1"
		r.create(used)
		poll.Until(r, "the engine knows the pod", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == i+2 })
		before := r.tried("g")
		r.planner.Wake(group)
		poll.Until(r, "it is tried again", func() bool { return r.tried("g") > before && r.planner.isParked(group) })
	}
	if reason, _ := r.reasons.Get(group); !strings.Contains(reason.Finding.Message, fmt.Sprintf("%d of 64 cpu free", 49-attempts)) {
		t.Errorf("the store has %q after %d attempts", reason.Finding.Message, attempts)
	}
	if n := patches(); n != members || r.message("g-0") != first {
		t.Errorf("%d conditions were written in one moment, want %d: %q, then %q", n, members, first, r.message("g-0"))
	}
	// Later the newest number is reported, once.
	clock.SetTime(clock.Now().Add(time.Minute))
	r.planner.Wake(group)
	poll.Until(r, "the newest number is reported", func() bool { return strings.Contains(r.message("g-0"), fmt.Sprintf("%d of 64 cpu free", 49-attempts)) })
	poll.Until(r, "by all members, once", func() bool { return patches() == 2*members })
}

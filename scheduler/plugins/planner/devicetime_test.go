package planner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// Attempts that fail after a long search for devices take a twentieth of the time at most, those of all namespaces together, and the pods of
// other namespaces wait for none of them.
func TestSlowClaimsTakeATwentieth(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	d := newDeviceTime(clock)
	claiming := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}}
	const took, span = 250 * time.Millisecond, time.Hour
	spent := map[string]time.Duration{}
	for end := clock.Now().Add(span); clock.Now().Before(end); clock.Step(10 * time.Millisecond) {
		for _, namespace := range []string{"a", "b", "c"} {
			if d.wait(namespace, &corev1.Pod{}, claiming) == 0 {
				clock.Step(took)
				d.spend(namespace, took)
				spent[namespace] += took
			}
		}
		if d.wait("quiet", claiming) > 0 || d.wait("a", &corev1.Pod{}) > 0 {
			t.Fatal("others wait")
		}
	}
	sum := spent["a"] + spent["b"] + spent["c"]
	if sum > span/deviceShare*11/10 || sum < span/deviceShare/2 {
		t.Errorf("slow attempts took %s of %s: %v", sum, span, spent)
	}
	for namespace, share := range spent {
		if share < sum/6 || share > sum/2 {
			t.Errorf("namespace %s had %s of %s", namespace, share, sum)
		}
	}
}

// What is found soon is tried again at once.
func TestFastClaimsAreNotPostponed(t *testing.T) {
	d := newDeviceTime(clocktesting.NewFakeClock(time.Unix(0, 0)))
	d.spend("a", slowSearch-1)
	if wait := d.wait("a", &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{}}}}); wait > 0 {
		t.Errorf("postponed by %s", wait)
	}
}

package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// leaves is a pod that is to be gone in half a minute.
func (b *bench) leaves(name string) *corev1.Pod {
	p := pod(name, "n1", corev1.PodRunning)
	p.DeletionTimestamp = &metav1.Time{Time: b.clock.Now().Add(30 * time.Second)}
	return p
}

// A gang that is shut down has nothing written before its pods are gone. On a node
// that is dead they never are.
func TestWhoLeavesCountsUntilItShouldBeGone(t *testing.T) {
	b := newBench(t, pod("a", "n1", corev1.PodRunning), pod("b", "n1", corev1.PodRunning))
	b.reconcile()
	b.pods = []*corev1.Pod{b.leaves("a"), b.leaves("b")}
	b.reconcile()
	b.clock.Step(30*time.Second + deletionSlack/2)
	b.reconcile()
	if got, n := b.status(), len(b.patches()); n != 1 || got != "Running running 2" {
		t.Errorf("%d patches, status %s while it shuts down", n, got)
	}
	b.clock.Step(deletionSlack / 2)
	for range 3 {
		b.reconcile()
	}
	if got, n := b.status(), len(b.patches()); n != 2 || got != "Pending" {
		t.Errorf("%d patches, status %s when the pods should be gone", n, got)
	}
}

// A gang waits for the replacement of a member as soon as that leaves.
func TestAGangWaitsWhileAMemberLeaves(t *testing.T) {
	b := benchOf(t, gang.Volcano, podGroups("scheduling.volcano.sh", "v1beta1"), pod("a", "n1", corev1.PodRunning), pod("b", "n1", corev1.PodRunning))
	b.reconcile()
	replacement := pod("b2", "", corev1.PodPending)
	replacement.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}} // the engine wrote it
	b.pods, b.sentence = []*corev1.Pod{b.pods[0], b.leaves("b"), replacement}, "no room"
	b.reconcile()
	if got := b.status(); !strings.Contains(got, "Unschedulable=True/NotEnoughResources") {
		t.Errorf("status %s", got)
	}
}

// Failed is final for the controller of scheduler-plugins.
func TestAnAttemptAfterAFailedOneHasNotFailed(t *testing.T) {
	b := newBench(t, pod("old", "n1", corev1.PodFailed), pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending))
	b.reconcile()
	b.clock.Step(patience)
	b.reconcile()
	if got := b.status(); got != "Pending failed 1" {
		t.Errorf("status %s", got)
	}
	b.pods = b.pods[:2]
	b.reconcile()
	if got := b.status(); got != "Failed failed 1" {
		t.Errorf("status %s of a gang that cannot reach its minimum", got)
	}
}

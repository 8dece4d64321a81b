package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A member that comes while its gang waits for room gets the condition that the others have,
// and those are left alone.
func TestAMemberThatComesLateGetsACondition(t *testing.T) {
	const sentence = "0/2 nodes are available: 8 of the 9 members that its gang needs fit: no room."
	b := newBench(t, pod("old", "", corev1.PodPending), pod("new", "", corev1.PodPending), pod("bound", "n1", corev1.PodPending))
	b.pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "by the engine"}}
	conditions := func() (conditions []string) {
		for _, patch := range b.patches() {
			if strings.HasPrefix(patch, "pods/") {
				conditions = append(conditions, patch)
			}
		}
		return conditions
	}
	b.clock.Step(time.Hour)
	b.reconcile()
	if got := conditions(); len(got) > 0 {
		t.Errorf("nothing is known of the gang, and its members were patched: %q", got)
	}
	b.sentence = sentence
	b.pods[1].CreationTimestamp = metav1.NewTime(b.clock.Now())
	b.reconcile()
	if got := conditions(); len(got) > 0 {
		t.Errorf("the engine has had no time, and its members were patched: %q", got)
	}
	for range 3 {
		b.clock.Step(patience)
		b.reconcile()
		explained, err := b.Client.CoreV1().Pods(key.Namespace).Get(t.Context(), "new", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.pods[1] = explained
	}
	got := conditions()
	if len(got) != 1 || !strings.HasPrefix(got[0], "pods/new ") || !strings.Contains(got[0], sentence) || !strings.Contains(got[0], `"reason":"Unschedulable"`) {
		t.Errorf("patched %q, want the new member to be explained once", got)
	}
}

// Members that were bare while the gang was being created are not bare for long when the engine starts to write their conditions.
func TestSilenceBeginsAgainWithAnAttempt(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending))
	b.incomplete = "gang research/llama waits for its pods: 2/3 pods exist"
	b.reconcile()
	b.clock.Step(patience / 2)
	b.incomplete = ""
	b.reconcile() // complete, and not tried yet
	b.clock.Step(maxBare)
	b.sentence = "0/2 nodes are available: 1 of the 2 members that its gang needs fit: no room."
	b.reconcile()
	if slices.ContainsFunc(b.patches(), func(patch string) bool { return strings.HasPrefix(patch, "pods/") }) {
		t.Errorf("patched at once: %q", b.patches())
	}
}

// Members that are created one by one, and those that the engine reports one by one, are left to whoever is at it, for a while.
func TestGangsThatAreReportedOnAreLeftAlone(t *testing.T) {
	b := newBench(t, pod("first", "", corev1.PodPending))
	b.sentence = "0/2 nodes are available: 3 of the 9 members that its gang needs fit: no room."
	explained := func() bool {
		return slices.ContainsFunc(b.patches(), func(patch string) bool { return strings.HasPrefix(patch, "pods/") })
	}
	create := func(name string) {
		b.pods = append(b.pods, pod(name, "", corev1.PodPending))
		if _, err := b.Client.CoreV1().Pods(key.Namespace).Create(t.Context(), b.pods[len(b.pods)-1], metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		create(fmt.Sprintf("next-%d", i))
		b.reconcile()
		b.clock.Step(patience * 3 / 4)
	}
	for i := range b.pods[1:] { // the engine is at work
		b.pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
		b.reconcile()
		b.clock.Step(patience / 40)
	}
	if explained() {
		t.Errorf("patched %q", b.patches())
	}
	for i := 0; !explained(); i++ { // others come again and again: none stays bare indefinitely
		if b.clock.Step(patience / 2); i > int(2*maxBare/patience) {
			t.Fatal("it is not explained")
		}
		create(fmt.Sprintf("endless-%d", i))
		b.reconcile()
	}
}

package preemption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
)

// podIn is a pod of a namespace with some CPUs.
func podIn(namespace, name string, cpus int64) *corev1.Pod {
	pod := enginetest.Pod(name, "", enginetest.CPUs(cpus))
	pod.Namespace = namespace
	return pod
}

// llama is the reservation of a gang of 4 CPUs.
func llama(members int) *reservation {
	var pods []*corev1.Pod
	for i := range members {
		pods = append(pods, podIn("secret", fmt.Sprint("llama-", i), 4/int64(members)))
	}
	return newReservation(cause{key: types.NamespacedName{Namespace: "secret", Name: "labels:llama"}, priority: 5, pods: pods}, map[string][]*corev1.Pod{"n1": pods[:1]}, time.Time{})
}

// Neither does a victim read who preempts it, nor the preemptor whom, if that is in another namespace.
func TestPreemptionNamesNothingOfOtherNamespaces(t *testing.T) {
	r := llama(2)
	for reader, want := range map[audience.Reader]string{
		audience.Hidden.Reader("ns"):     "preempted by a gang of another namespace (4 cpu, priority 5)",
		audience.Named.Reader("ns"):      "preempted by gang secret/llama of priority 5",
		audience.Hidden.Reader("secret"): "preempted by gang secret/llama of priority 5",
	} {
		if got := r.because(reader); got != want {
			t.Errorf("%+v reads %q, want %q", reader, got, want)
		}
	}
	for reader, want := range map[audience.Reader]string{
		audience.Hidden.Reader("ns"): "Preempted by a gang of another namespace (4 cpu, priority 5)",
		audience.Named.Reader("ns"):  "Preempted by podgroup secret/llama of priority 5",
	} {
		if got := r.note(reader); got != want {
			t.Errorf("the event for %+v is %q, not %q", reader, got, want)
		}
	}
	for _, c := range r.claims() {
		if got := c.Why.For(audience.Hidden.Reader("ns")); got != "being cleared for a gang of another namespace (4 cpu, priority 5)" {
			t.Errorf("others read %q", got)
		}
	}
	units := []Unit{
		{Kind: Single, Pods: []*corev1.Pod{podIn("ns", "mine", 1)}},
		{Kind: Single, Pods: []*corev1.Pod{podIn("secret", "web", 1)}},
		{Kind: Whole, Gang: "secret/labels:bert", Pods: []*corev1.Pod{podIn("secret", "bert-0", 3)}, Priority: 2},
	}
	want := "2 pods of lower priority (ns/mine, one of another namespace) and a gang of another namespace (3 cpu, priority 2)"
	if got := describe(units, audience.Hidden.Reader("ns")); got != want {
		t.Errorf("the preemptor reads %q, want %q", got, want)
	}
	if got := describe(units, audience.Reader{}); !strings.Contains(got, "secret/web") || !strings.Contains(got, "the gang of pod secret/bert-0 (1 pod)") {
		t.Errorf("the log has %q", got)
	}
}

// Each victim is told for whom it goes: the members of that gang are not gone through with each.
func TestNoteOfALargeGang(t *testing.T) {
	allocations := func(members int) float64 {
		r := llama(members)
		return testing.AllocsPerRun(100, func() { r.note(audience.Hidden.Reader("ns")) })
	}
	if one, many := allocations(1), allocations(400); many > one {
		t.Errorf("%v allocations for one member, %v for 400", one, many)
	}
}

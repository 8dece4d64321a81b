package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// budgetForTests is long enough for a slow machine: a test must not depend on how fast it runs.
const budgetForTests = time.Minute

func TestSlotsAndFree(t *testing.T) {
	c := NewCluster(Objects{
		Nodes: []*corev1.Node{big("n1"), big("n2", cordoned), big("n3")},
		Pods:  []*corev1.Pod{busy("a", "n1", 3), busy("b", "n3", 8), busy("c", "n3", 2)},
	})
	pod := aPod("w", amounts("gpu", 2))
	if diff := cmp.Diff([]NodeSlots{{"n1", 2}}, Slots(c, pod, 100, Options{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]NodeSlots{{"n1", 1}}, Slots(c, aPod("w", amounts("gpu", 2), hostPort(1)), 100, Options{})); diff != "" {
		t.Error(diff)
	}
	free, total := c.Free("n3"), c.Total("n3")
	if g, p, all := free[gpu], free[corev1.ResourcePods], total[gpu]; g.Value() != -2 || p.Value() != 108 || all.Value() != 8 {
		t.Errorf("free %v of %v, want -2 of 8 gpu and 108 pods", free, total)
	}
	if c.Free("nope") != nil || c.Node("nope") != nil || c.PodsOn("nope") != nil {
		t.Error("an unknown node has something")
	}
}

func TestIdeal(t *testing.T) {
	sick := big("n1", cordoned, notReady, deleting)
	sick.DeletionTimestamp = nil
	sick.Status.Allocatable[gpu] = amounts("gpu", 6)[gpu]
	stays := aPod("ds", amounts("gpu", 1), on("n1"))
	stays.OwnerReferences = []metav1.OwnerReference{controller("apps/v1", "DaemonSet")}
	c := NewCluster(Objects{Nodes: []*corev1.Node{sick}, Pods: []*corev1.Pod{busy("a", "n1", 5), stays}})
	ideal := c.Ideal(DaemonSetPod)
	if n := ideal.Free("n1")[gpu]; n.Value() != 7 {
		t.Errorf("%d GPUs on the ideal node, want all 8 less the DaemonSet's", n.Value())
	}
	if m := ideal.Matrix(aPod("w", amounts("gpu", 7))); len(m.Eligible()) != 1 {
		t.Errorf("the ideal node refuses: %v", m.Rows)
	}
	if m := c.Matrix(aPod("w", amounts("gpu", 7))); len(m.Rows[0].Violations) != 3 {
		t.Errorf("the snapshot itself has changed: %v", m.Rows)
	}
}

func TestLargest(t *testing.T) {
	for want := int64(-1); want <= 9; want++ {
		got, ok := Largest(0, 9, func(n int64) bool { return n <= want })
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("got %d, %t; want %d", got, ok, want)
		}
	}
	if _, ok := Largest(3, 2, func(int64) bool { return true }); ok {
		t.Error("an empty range has a largest value")
	}
}

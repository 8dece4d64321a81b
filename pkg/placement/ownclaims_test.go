package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Roles that differ by their volumes alone are not alike: what keeps members off one node is no matter of those that go to another.
func TestRolesThatDifferByVolumes(t *testing.T) {
	c := NewCluster(Objects{
		Nodes:                  []*corev1.Node{big("n1", label(corev1.LabelTopologyZone, "z1")), big("n2", label(corev1.LabelTopologyZone, "z2"))},
		Pods:                   []*corev1.Pod{aPod("other", amounts("gpu", 8), on("n2"))},
		PersistentVolumeClaims: claims(aClaim("a", "c", "pv-a"), aClaim("b", "c", "pv-b"), aClaim("x", "c", "pv-x", corev1.ReadWriteMany), aClaim("y", "c", "pv-y", corev1.ReadWriteMany)),
		PersistentVolumes: volumes(aVolume("pv-a", "c", corev1.LabelTopologyZone, "z1"), aVolume("pv-b", "c", corev1.LabelTopologyZone, "z2"),
			aVolume("pv-x", "c"), aVolume("pv-y", "c")),
	})
	worker := func(claim string) *corev1.Pod { return aPod("w", amounts("gpu", 8), using(claim)) }
	for _, pair := range []struct {
		a, b  string
		alike bool
	}{{"a", "b", false}, {"x", "y", true}} {
		first, err := c.signatureOf(worker(pair.a))
		if err != nil {
			t.Fatal(err)
		}
		if second, err := c.signatureOf(worker(pair.b)); err != nil || (first == second) != pair.alike {
			t.Errorf("%s and %s: %s, %s, %v", pair.a, pair.b, first, second, err)
		}
	}
	g := Gang{Roles: []Role{role("first", 1, worker("a")), role("second", 1, worker("b"))}}
	if got := FindCauses(t.Context(), c, g, Options{Budget: budgetForTests}).String(); got != "resource:nvidia.com/gpu second" {
		t.Errorf("causes are %q", got)
	}
}

package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func in(namespace string) podOption { return func(p *corev1.Pod) { p.Namespace = namespace } }

func ofNamespaces(labels map[string]string) func(*corev1.PodAffinityTerm) {
	return func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels} }
}

// A term is about pods of the pod's own namespace, of those that it lists, and of those whose labels it selects.
func TestAffinityLooksIntoNamespaces(t *testing.T) {
	namespaces := []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"env": "test"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"env": "prod"}}},
	}
	listed := func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"web"} }
	for name, tc := range map[string]struct {
		there string // namespace of the pod on n1
		about func(*corev1.PodAffinityTerm)
		meant bool
	}{
		"its own":                     {"team", nil, true},
		"another":                     {"web", nil, false},
		"one that it lists":           {"web", listed, true},
		"its own, when others listed": {"team", listed, false},
		"selected by label":           {"web", ofNamespaces(map[string]string{"env": "prod"}), true},
		"not selected by label":       {"team", ofNamespaces(map[string]string{"env": "prod"}), false},
		"all":                         {"web", ofNamespaces(nil), true},
		"an unknown one":              {"gone", ofNamespaces(map[string]string{"env": "prod"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			there := aPod("x", nil, on("n1"), labelled("app", "x"), in(tc.there))
			c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1"), big("n2")}, Namespaces: namespaces, Pods: []*corev1.Pod{there}})
			away, with := aPod("w", nil, apart(corev1.LabelHostname, "app", "x")), aPod("w", nil, affineTo(corev1.LabelHostname, "app", "x"))
			if tc.about != nil {
				tc.about(&away.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0])
				tc.about(&with.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0])
			}
			for what, places := range map[string]struct {
				pod  *corev1.Pod
				want int
			}{"apart": {away, map[bool]int{true: 1, false: 2}[tc.meant]}, "together": {with, map[bool]int{true: 1, false: 0}[tc.meant]}} {
				if got := len(c.Matrix(places.pod).Eligible()); got != places.want {
					t.Errorf("%s: %d nodes, want %d", what, got, places.want)
				}
				r := Place(t.Context(), c, Gang{Roles: []Role{role("W", 1, places.pod)}}, Options{Budget: budgetForTests})
				if r.Fits() != (places.want > 0) {
					t.Errorf("%s: %s", what, r.Proof)
				}
			}
		})
	}
}

// Members of one gang are in one namespace; a term that is about others does not keep them apart.
func TestMembersAreNotMeantByTermsOfOtherNamespaces(t *testing.T) {
	pod := aPod("w", nil, labelled("app", "x"), apart(corev1.LabelHostname, "app", "x"))
	term := &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	g := Gang{Roles: []Role{role("W", 2, pod)}}
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1")}, Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"env": "test"}}}}})
	for _, tc := range []struct {
		about func(*corev1.PodAffinityTerm)
		fits  bool
	}{
		{nil, false}, {ofNamespaces(nil), false}, {ofNamespaces(map[string]string{"env": "test"}), false}, {ofNamespaces(map[string]string{"env": "prod"}), true},
	} {
		if term.NamespaceSelector = nil; tc.about != nil {
			tc.about(term)
		}
		if r := Place(t.Context(), c, g, Options{Budget: budgetForTests}); r.Fits() != tc.fits {
			t.Errorf("selector %v: %s", term.NamespaceSelector, r.Proof)
		}
	}
}

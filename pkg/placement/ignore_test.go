package placement

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Ignoring a constraint must be the same as placing pods that never had it.
func TestIgnoreEqualsPodsWithoutTheRule(t *testing.T) {
	strip := map[Constraint]func(*corev1.Pod){
		PodAffinity: func(p *corev1.Pod) {
			if p.Spec.Affinity != nil {
				p.Spec.Affinity.PodAffinity = nil
			}
		},
		TopologySpread:  func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = nil },
		HostPort:        func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil },
		NodeSelector:    func(p *corev1.Pod) { p.Spec.NodeSelector = nil },
		Resource("cpu"): func(p *corev1.Pod) { delete(p.Spec.Containers[0].Resources.Requests, "cpu") },
		Resource(gpu):   func(p *corev1.Pod) { delete(p.Spec.Containers[0].Resources.Requests, gpu) },
	}
	changed := map[Constraint]int{}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := randomAmounts(r)
		if seed%2 == 0 {
			w = randomInterPod(r)
		}
		c := NewCluster(w.objects)
		before := Place(t.Context(), c, w.gang, Options{Budget: budgetForTests})
		for constraint, without := range strip {
			g := w.gang
			g.Roles = slices.Clone(g.Roles)
			for i := range g.Roles {
				g.Roles[i].Pod = g.Roles[i].Pod.DeepCopy()
				without(g.Roles[i].Pod)
			}
			got := Place(t.Context(), c, w.gang, Options{Ignore: sets.New(constraint), Budget: budgetForTests})
			want := Place(t.Context(), c, g, Options{Budget: budgetForTests})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d without %s: %s\n%s", seed, constraint, diff, describe(w))
			}
			if got.Fits() != before.Fits() {
				changed[constraint]++
			}
			if before.Fits() && !got.Fits() {
				t.Fatalf("seed %d: does not fit any more without %s", seed, constraint)
			}
		}
	}
	for constraint := range strip {
		if changed[constraint] < 5 {
			t.Errorf("ignoring %s changed %d answers: the test proves little", constraint, changed[constraint])
		}
	}
}

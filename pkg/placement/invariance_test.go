package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func shuffled(r *rand.Rand, w instance) instance {
	shuffle := func(n int, swap func(i, j int)) { r.Shuffle(n, swap) }
	w.objects.Nodes, w.objects.Pods, w.gang.Roles = slices.Clone(w.objects.Nodes), slices.Clone(w.objects.Pods), slices.Clone(w.gang.Roles)
	shuffle(len(w.objects.Nodes), func(i, j int) { w.objects.Nodes[i], w.objects.Nodes[j] = w.objects.Nodes[j], w.objects.Nodes[i] })
	shuffle(len(w.objects.Pods), func(i, j int) { w.objects.Pods[i], w.objects.Pods[j] = w.objects.Pods[j], w.objects.Pods[i] })
	shuffle(len(w.gang.Roles), func(i, j int) { w.gang.Roles[i], w.gang.Roles[j] = w.gang.Roles[j], w.gang.Roles[i] })
	return w
}

func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := randomAmounts(r)
		if seed%2 == 0 {
			w = randomInterPod(r)
		}
		other := shuffled(r, w)
		a := Place(t.Context(), NewCluster(w.objects), w.gang, Options{})
		b := Place(t.Context(), NewCluster(other.objects), other.gang, Options{})
		byRole := func(x, y Assignment) int {
			return slices.Compare([]string{x.Role, fmt.Sprint(x.Member)}, []string{y.Role, fmt.Sprint(y.Member)})
		}
		slices.SortFunc(a.Placement, byRole)
		slices.SortFunc(b.Placement, byRole)
		if diff := cmp.Diff(a, b); diff != "" && a.Proof != BudgetHit {
			t.Fatalf("seed %d: %s\n%s", seed, diff, describe(w))
		}
		for _, role := range w.gang.Roles {
			if diff := cmp.Diff(NewCluster(w.objects).Matrix(role.Pod), NewCluster(other.objects).Matrix(role.Pod), cmp.AllowUnexported(Matrix{}, Row{})); diff != "" {
				t.Fatalf("seed %d: matrix: %s", seed, diff)
			}
		}
	}
}

func TestRemovingPodsNeverTakesAPlacementAway(t *testing.T) {
	fits := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		w := randomAmounts(r)
		c := NewCluster(w.objects)
		before := Place(t.Context(), c, w.gang, Options{})
		var gone []types.UID
		for _, p := range w.objects.Pods {
			if r.IntN(2) == 0 {
				gone = append(gone, p.UID)
			}
		}
		after := Place(t.Context(), c.Without(gone...), w.gang, Options{})
		if before.Fits() && !after.Fits() {
			t.Fatalf("seed %d: fits with the pods %v but not without: %s\n%s", seed, gone, after.Proof, describe(w))
		}
		if before.Fits() {
			fits++
		}
		ideal := Place(t.Context(), c.Ideal(DaemonSetPod), w.gang, Options{})
		if after.Fits() && !ideal.Fits() {
			t.Fatalf("seed %d: fits now but not on the ideal cluster: %s\n%s", seed, ideal.Proof, describe(w))
		}
	}
	if fits < 500 {
		t.Errorf("only %d instances fit at first: the test proves little", fits)
	}
}

// A what-if must equal the snapshot that was taken of the changed cluster.
func TestWhatIfEqualsNewCluster(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		w := randomInterPod(r)
		var gone []types.UID
		kept := w.objects
		kept.Pods = nil
		for _, p := range w.objects.Pods {
			if r.IntN(2) == 0 {
				gone = append(gone, p.UID)
			} else {
				kept.Pods = append(kept.Pods, p)
			}
		}
		c := NewCluster(w.objects)
		left := c.Without(gone...)
		var back []*corev1.Pod
		for _, p := range w.objects.Pods {
			if slices.Contains(gone, p.UID) {
				back = append(back, p)
			}
		}
		for _, role := range w.gang.Roles {
			for name, pair := range map[string][2]*Cluster{
				"Without": {left, NewCluster(kept)},
				"With":    {left.With(back...).With(back...), c},
				"Nodes":   {c.WithoutNodes("n0").WithNodes(w.objects.Nodes[0]).With(w.objects.Pods...), c},
			} {
				if diff := cmp.Diff(pair[0].Matrix(role.Pod), pair[1].Matrix(role.Pod), cmp.AllowUnexported(Matrix{}, Row{})); diff != "" {
					t.Fatalf("seed %d: %s: %s", seed, name, diff)
				}
			}
		}
	}
}

func FuzzPlace(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, seed*7, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, a, b uint64, interPod bool) {
		r := rand.New(rand.NewPCG(a, b))
		w := randomAmounts(r)
		if interPod {
			w = randomInterPod(r)
		}
		c := NewCluster(w.objects)
		got := Place(t.Context(), c, w.gang, Options{})
		if got.Proof != BudgetHit && got.Fits() != oracle(c, w.gang) {
			t.Fatalf("got %s, brute force says %t\n%s", got.Proof, !got.Fits(), describe(w))
		}
		if !inOrder(c, w.gang, got.Placement) {
			t.Fatalf("placement %v violates a constraint\n%s", got.Placement, describe(w))
		}
	})
}

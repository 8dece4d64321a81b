package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomLarger makes a cluster and gang that are too large for brute force, with constraints between roles.
func randomLarger(r *rand.Rand) instance {
	var w instance
	for i := range 8 + r.IntN(8) {
		w.objects.Nodes = append(w.objects.Nodes, aNode(fmt.Sprint("n", i), amounts("cpu", 2+r.IntN(6)),
			label("zone", fmt.Sprint("z", r.IntN(3))), label("rack", fmt.Sprint("k", r.IntN(5)))))
	}
	for i := range 1 + r.IntN(3) {
		p := aPod(fmt.Sprint("m", i), amounts("cpu", 1+r.IntN(3)), labelled("app", fmt.Sprint("r", i)), labelled("job", "j"))
		for range r.IntN(3) {
			randomRule(r, p)
		}
		w.gang.Roles = append(w.gang.Roles, role(fmt.Sprint("r", i), 1+r.Int32N(7), p))
	}
	return w
}

func TestWitnessesOfLargerInstancesHold(t *testing.T) {
	proofs := map[Proof]int{}
	for seed := range uint64(100) {
		w := randomLarger(rand.New(rand.NewPCG(seed, 9)))
		c := NewCluster(w.objects)
		got := Place(t.Context(), c, w.gang, Options{})
		proofs[got.Proof]++
		if !inOrder(c, w.gang, got.Placement) {
			t.Fatalf("seed %d: %s: placement %v violates a constraint\n%s", seed, got.Proof, got.Placement, describe(w))
		}
	}
	t.Log(proofs)
	if proofs[Witness] < 40 || proofs[BudgetHit] > 30 {
		t.Errorf("too few answers: %v", proofs)
	}
}

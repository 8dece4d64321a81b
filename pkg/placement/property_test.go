package placement

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func testAgainstOracle(t *testing.T, seeds uint64, random func(*rand.Rand) instance, largest bool) {
	proofs := map[Proof]int{}
	for seed := range seeds {
		w := random(rand.New(rand.NewPCG(seed, 1)))
		c := NewCluster(w.objects)
		got := Place(t.Context(), c, w.gang, Options{})
		proofs[got.Proof]++
		if got.Proof == BudgetHit {
			continue
		}
		if want := oracle(c, w.gang); got.Fits() != want {
			t.Fatalf("seed %d: got %s (%+v), want fits=%t\n%s", seed, got.Proof, got.Bound, want, describe(w))
		}
		if largest && w.gang.Topology.Required == "" && seed%4 == 0 {
			g := w.gang
			g.MinMember, g.Roles = 0, slices.Clone(g.Roles)
			most := 0
			tryAll(c, g, "", make([]int32, len(g.Roles)), map[string]bool{}, func(placed int) { most = max(most, placed) })
			if len(got.Placement) != most {
				t.Fatalf("seed %d: %s with %d members placed, %d fit\n%s", seed, got.Proof, len(got.Placement), most, describe(w))
			}
		}
		if len(got.Sequence) > 0 && !inThisOrder(c, w.gang, got) {
			t.Fatalf("seed %d: %s: placement %v does not come about in the order %v\n%s", seed, got.Proof, got.Placement, got.Sequence, describe(w))
		}
		if !inOrder(c, w.gang, got.Placement) {
			t.Fatalf("seed %d: %s: placement %v violates a constraint\n%s", seed, got.Proof, got.Placement, describe(w))
		}
	}
	t.Log(proofs)
	if proofs[Witness] < int(seeds)/10 || proofs[Witness] > int(seeds)*9/10 || proofs[BudgetHit] > int(seeds)/100 {
		t.Errorf("the instances prove little: %v", proofs)
	}
}

func TestPlaceAgreesWithBruteForceOnAmounts(t *testing.T) {
	testAgainstOracle(t, 3000, randomAmounts, true)
}

func TestPlaceAgreesWithBruteForceOnAffinity(t *testing.T) {
	testAgainstOracle(t, 3000, randomInterPod, false)
}

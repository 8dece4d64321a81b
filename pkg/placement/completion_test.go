package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// filled makes a cluster and a gang of different members that fill it to the brim: nodes of the same size are cut into pieces.
func filled(r *rand.Rand, nodes, pieces int) instance {
	var w instance
	size := 40 + r.IntN(60)
	for i := range nodes {
		w.objects.Nodes = append(w.objects.Nodes, aNode(fmt.Sprint("n", i), amounts("cpu", size, "memory", 2*size)))
		cpu, memory := cuts(r, size, pieces), cuts(r, 2*size, pieces)
		for j := range pieces {
			w.gang.Roles = append(w.gang.Roles, role(fmt.Sprintf("r%02d", len(w.gang.Roles)), 1, aPod(fmt.Sprint("m", i, j), amounts("cpu", cpu[j], "memory", memory[j]))))
		}
	}
	r.Shuffle(len(w.gang.Roles), func(i, j int) { w.gang.Roles[i].Pod, w.gang.Roles[j].Pod = w.gang.Roles[j].Pod, w.gang.Roles[i].Pod })
	return w
}

// cuts cuts a number into pieces of at least 1.
func cuts(r *rand.Rand, size, pieces int) []int {
	out := make([]int, pieces)
	left := size - pieces
	for i := range out {
		n := r.IntN(left + 1)
		if i == pieces-1 {
			n = left
		}
		out[i], left = 1+n, left-n
	}
	return out
}

// Many different members that fill the nodes to the brim have their places, which no order of them finds at once.
func TestPlaceManyDifferentMembers(t *testing.T) {
	greedy := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := filled(r, 4+r.IntN(2), 4)
		c := NewCluster(w.objects)
		task := newTask(t.Context(), c, w.gang, Options{Budget: budgetForTests})
		task.findCandidates()
		task.order(task.candidates)
		if task.full(task.greedy(task.candidates).placed) {
			greedy++
		}
		got := Place(t.Context(), c, w.gang, Options{Budget: budgetForTests})
		if !got.Fits() || len(got.Placement) != len(w.gang.Roles) {
			t.Fatalf("seed %d: %s with %d of %d members\n%s", seed, got.Proof, len(got.Placement), len(w.gang.Roles), describe(w))
		}
		if !inOrder(c, w.gang, got.Placement) {
			t.Fatalf("seed %d: placement %v violates a constraint\n%s", seed, got.Placement, describe(w))
		}
	}
	if greedy > 20 {
		t.Errorf("%d of 60 need no search: this proves little", greedy)
	}
}

// One by one it finds what a table of all sets finds, and proves what that proves.
func TestCompletionAgreesWithTable(t *testing.T) {
	whole := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 12))
		w := randomAmounts(r)
		if seed%2 == 0 {
			w = randomVolumes(r)
		}
		for i := range w.gang.Roles {
			w.gang.Roles[i].Min = 0
			if affinity := w.gang.Roles[i].Pod.Spec.Affinity; affinity != nil {
				affinity.PodAffinity = nil // that is for another search
			}
			w.gang.Roles[i].Pod.Spec.TopologySpreadConstraints = nil
		}
		w.gang.MinMember = 0
		task := newTask(t.Context(), NewCluster(w.objects), w.gang, Options{Budget: budgetForTests})
		task.findConstraints(t.Context())
		task.findCandidates()
		task.order(task.candidates)
		if len(task.roles) < 2 {
			continue
		}
		table := newDPTable(task)
		for _, s := range task.candidates {
			table.add(task.combinations(s))
		}
		x := newCompletion(task, task.candidates, mostSteps)
		p, found := x.solve()
		if want := task.full(table.best(task.candidates).placed); found != want || x.cut {
			t.Fatalf("seed %d: found %t, cut %t, want %t\n%s", seed, found, x.cut, want, describe(w))
		}
		if !found {
			continue
		}
		whole++
		for at, s := range p.candidates {
			free, counts := append([]int64{}, s.free...), make(combination, len(task.roles))
			for i, n := range p.counts[at] {
				for range n {
					if !task.addable(s, counts, free, i) {
						t.Fatalf("seed %d: %v does not fit on %s\n%s", seed, p.counts[at], s.n.obj.Name, describe(w))
					}
					counts[i]++
					task.roles[i].take(free, 1)
				}
			}
		}
		if !task.full(p.placed) {
			t.Fatalf("seed %d: placed %v", seed, p.placed)
		}
	}
	if whole < 500 || whole > 3500 {
		t.Errorf("%d whole gangs: this proves little", whole)
	}
}

// That many different members have no place is proven where all of them are needed, and where it is not proven nothing is claimed.
func TestManyDifferentMembersWithoutAPlace(t *testing.T) {
	var w instance
	for i := range 4 {
		w.objects.Nodes = append(w.objects.Nodes, aNode(fmt.Sprint("n", i), amounts("cpu", 10)))
	}
	for i := range 20 { // 8 of more than 5, of which there is one to a node
		cpu := 1000 + i
		if i < 5 {
			cpu = 5001 + i
		}
		w.gang.Roles = append(w.gang.Roles, role(fmt.Sprintf("r%02d", i), 1, aPod("m", amounts("cpu", fmt.Sprint(cpu, "m")))))
	}
	c := NewCluster(w.objects)
	if got := Place(t.Context(), c, w.gang, Options{Budget: budgetForTests}); !got.Impossible() {
		t.Errorf("%s", got.Proof)
	}
	w.gang.MinMember = 19
	if got := Place(t.Context(), c, w.gang, Options{Budget: budgetForTests}); got.Impossible() {
		t.Errorf("%s, and all but one have a place", got.Proof)
	}
}

package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
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
		task := instanceTask(t, w)
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
		task := instanceTask(t, w)
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

// instanceTask is a task of which the candidates are known, before anything is searched.
func instanceTask(t *testing.T, w instance) *task {
	task := newTask(t.Context(), NewCluster(w.objects), w.gang, Options{Budget: budgetForTests})
	task.findConstraints(t.Context())
	task.findCandidates()
	task.order(task.candidates)
	return task
}

// Where nodes are all alike, and have as much in all as the members request, it proves what a table proves: that no cut of them fits.
func TestCompletionAgreesWithTableOnNodesThatAreAlike(t *testing.T) {
	fits, searched := 0, 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 13))
		w := filled(r, 4+r.IntN(2), 3)
		if seed%4 > 0 { // the same amounts in all, in other pairs
			r.Shuffle(len(w.gang.Roles), func(i, j int) {
				a, b := w.gang.Roles[i].Pod.Spec.Containers[0].Resources.Requests, w.gang.Roles[j].Pod.Spec.Containers[0].Resources.Requests
				a[corev1.ResourceMemory], b[corev1.ResourceMemory] = b[corev1.ResourceMemory], a[corev1.ResourceMemory]
			})
		}
		task := instanceTask(t, w)
		table := newDPTable(task)
		combinations := task.combinations(task.candidates[0])
		for range task.candidates {
			table.add(combinations)
		}
		x := newCompletion(task, task.candidates, 1<<24)
		could := x.couldFit(0)
		_, found := x.solve()
		if want := table.complete(); found != want || x.cut {
			t.Fatalf("seed %d: found %t, cut %t, want %t\n%s", seed, found, x.cut, want, describe(w))
		}
		if found {
			fits++
		} else if could {
			searched++
		}
	}
	if fits < 10 || searched < 10 {
		t.Errorf("%d fit, and of %d it takes a search that they do not: this proves little", fits, searched)
	}
}

// Nodes that take nothing of what is left cost no steps.
func TestCompletionPassesOverNodesThatTakeNothing(t *testing.T) {
	var w instance
	for i := range 5000 {
		w.objects.Nodes = append(w.objects.Nodes, aNode(fmt.Sprintf("n%04d", i), amounts("cpu", 4)))
	}
	for i := range 2 {
		w.objects.Nodes = append(w.objects.Nodes, aNode(fmt.Sprint("late", i), amounts("cpu", 4, "gpu", 1)))
	}
	for i := range 40 {
		requests := amounts("cpu", fmt.Sprint(1000+i%2, "m"))
		if i < 2 {
			requests = amounts("cpu", 1, "gpu", 1)
		}
		w.gang.Roles = append(w.gang.Roles, role(fmt.Sprintf("r%02d", i), 1, aPod("m", requests)))
	}
	task := instanceTask(t, w)
	slices.SortFunc(task.candidates, func(a, b *candidate) int { return strings.Compare(b.n.obj.Name, a.n.obj.Name) })
	x := newCompletion(task, task.candidates, mostSteps)
	if _, found := x.solve(); !found || x.steps > 2000 {
		t.Errorf("found %t after %d steps", found, x.steps)
	}
}

// Nothing is prepared for a search that may take no more steps, or where the gang claims devices.
func TestCompletionThatMayNotBegin(t *testing.T) {
	task := instanceTask(t, filled(rand.New(rand.NewPCG(1, 11)), 4, 4))
	first := task.emptyPacking()
	none := func(why string) {
		if allocations := testing.AllocsPerRun(10, func() { task.packMany(task.candidates, first, false) }); allocations > 0 {
			t.Errorf("%s: %v allocations", why, allocations)
		}
	}
	task.completed = mostSteps
	none("no steps are left")
	task.completed, task.devices = 0, &deviceFit{}
	none("with devices")
}

// The first of two racks has too few devices, which takes no search that leaves no time for the other.
func TestManyDifferentMembersWithDevices(t *testing.T) {
	o := deviceObjects()
	o.Nodes, o.Pods, o.ResourceSlices, o.ResourceClaims = nil, nil, nil, nil
	for i := range 9 {
		name, rack := fmt.Sprint("n", i), "a"
		if i >= 4 {
			rack = "b"
		}
		o.Nodes, o.ResourceSlices = append(o.Nodes, aNode(name, amounts("cpu", 96), label("rack", rack))), append(o.ResourceSlices, aSlice(name, 4))
	}
	g := Gang{Topology: gang.Topology{Required: "rack"}}
	for i := range 20 {
		claim := fmt.Sprint("claim-", i)
		o.ResourceClaims = append(o.ResourceClaims, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: claim}, Spec: requestingDevices(1, "")})
		pod := aPod(fmt.Sprint("w", i), nil)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}}
		g.Roles = append(g.Roles, role(fmt.Sprintf("r%02d", i), 1, pod))
	}
	if r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests / 4}); !r.Fits() || r.Domain != "b" {
		t.Errorf("%s in %q", r.Proof, r.Domain)
	}
}

// That many different members have no place is proven where all of them are needed, and where it is not proven nothing is claimed.
func TestManyDifferentMembersWithoutAPlace(t *testing.T) {
	var w instance
	for i := range 4 {
		w.objects.Nodes = append(w.objects.Nodes, aNode(fmt.Sprint("n", i), amounts("cpu", 10)))
	}
	for i := range 20 { // five request more than half of a node each, and there are four nodes
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

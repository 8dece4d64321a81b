package preemption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

const generous = 20 * time.Second

// named lists the victims of a choice, in order.
func victims(c Choice) string {
	var all []string
	for _, pod := range podsOf(c.Units) {
		all = append(all, pod.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestWhoHasToGo(t *testing.T) {
	two := []*corev1.Node{aNode("n1", 4), aNode("n2", 4)}
	one := []*corev1.Node{aNode("n1", 4)}
	for name, c := range map[string]struct {
		nodes   []*corev1.Node
		running []*corev1.Pod
		members int32
		cpus    int
		budgets []*policyv1.PodDisruptionBudget
		want    string
	}{
		"singles, and no gang is broken (T12)": {two, []*corev1.Pod{
			aPod("l-0", "n1", 1, in("l", 4)), aPod("l-1", "n1", 1, in("l", 4)), aPod("l-2", "n2", 1, in("l", 4)), aPod("l-3", "n2", 1, in("l", 4)),
			aPod("s-0", "n1", 1, started(0)), aPod("s-1", "n1", 1, started(1)), aPod("s-2", "n2", 1, started(2)), aPod("s-3", "n2", 1, started(3)),
		}, 3, 1, nil, "s-1 s-2 s-3"},
		"nobody, if it does not fit for all that (T11)": {two, []*corev1.Pod{aPod("s-0", "n1", 4), aPod("s-1", "n2", 4)}, 9, 1, nil, "impossible"},
		"above the minimum before the core": {one, []*corev1.Pod{
			aPod("l-0", "n1", 1, in("l", 2), started(0)), aPod("l-1", "n1", 1, in("l", 2), started(1)), aPod("l-2", "n1", 1, in("l", 2), started(2)), aPod("l-3", "n1", 1, in("l", 2), started(3)),
		}, 2, 1, nil, "l-2 l-3"},
		"a gang as a whole, if nothing else is enough": {one, []*corev1.Pod{
			aPod("l-0", "n1", 1, in("l", 2)), aPod("l-1", "n1", 1, in("l", 2)), aPod("l-2", "n1", 1, in("l", 2)), aPod("s", "n1", 1, ranked(100)),
		}, 2, 1, nil, "l-0 l-1 l-2"},
		"the lowest priority first": {one, []*corev1.Pod{
			aPod("low-0", "n1", 1), aPod("low-1", "n1", 1), aPod("high", "n1", 2, ranked(50)),
		}, 1, 2, nil, "low-0 low-1"},
		"one large rather than two small": {two, []*corev1.Pod{
			aPod("s-0", "n1", 2), aPod("s-1", "n1", 2), aPod("large", "n2", 4, started(-60)),
		}, 1, 4, nil, "large"},
		"nobody whom a budget guards, if others do": {one, []*corev1.Pod{
			aPod("g", "n1", 2, guarded("b")), aPod("s", "n1", 2, ranked(50)),
		}, 1, 2, []*policyv1.PodDisruptionBudget{budget("b", 0)}, "s"},
		"whom a budget guards, if nobody else does": {one, []*corev1.Pod{
			aPod("g", "n1", 2, guarded("b")), aPod("s", "n1", 2, ranked(100)),
		}, 1, 2, []*policyv1.PodDisruptionBudget{budget("b", 0)}, "g"},
		"as many as a budget allows": {one, []*corev1.Pod{
			aPod("g-0", "n1", 1, guarded("b")), aPod("g-1", "n1", 1, guarded("b")), aPod("s-0", "n1", 1, ranked(50)), aPod("s-1", "n1", 1, ranked(60)),
		}, 2, 1, []*policyv1.PodDisruptionBudget{budget("b", 1)}, "g-1 s-0"},
		"the youngest": {one, []*corev1.Pod{
			aPod("a", "n1", 1, started(3)), aPod("b", "n1", 1, started(1)), aPod("c", "n1", 1, started(2)), aPod("d", "n1", 1, started(0)),
		}, 1, 1, nil, "a"},
		"nobody of the same priority": {one, []*corev1.Pod{aPod("s", "n1", 4, ranked(100))}, 1, 1, nil, "impossible"},
		"no pod of a DaemonSet": {one, []*corev1.Pod{aPod("d", "n1", 4, func(p *corev1.Pod) {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: &yes}}
		})}, 1, 1, nil, "impossible"},
		"a gang that a pod of a DaemonSet names": {one, []*corev1.Pod{aPod("l-0", "n1", 3, in("l", 1)), aPod("d", "n1", 1, in("l", 1), func(p *corev1.Pod) {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: &yes}}
		})}, 1, 3, nil, "l-0"},
		"whom a DaemonSet owns that does not control it": {one, []*corev1.Pod{aPod("s", "n1", 4, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d"}}
		})}, 1, 1, nil, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			choice, verdict := Choose(t.Context(), newQuery(c.nodes, c.running, c.members, c.cpus, c.budgets...), generous)
			got := victims(choice)
			if verdict != Found {
				got = string(verdict)
			}
			if got != c.want || verdict == Found && !choice.Cheapest {
				t.Errorf("%s (cheapest: %v), want %s", got, choice.Cheapest, c.want)
			}
		})
	}
}

// Of a gang whose minimum is placed as many members may have a place as pods of a lower priority leave room for.
func TestMost(t *testing.T) {
	for name, c := range map[string]struct {
		running []*corev1.Pod
		want    int32
	}{
		"all places are of pods that go": {[]*corev1.Pod{aPod("a", "n1", 1), aPod("b", "n1", 1), aPod("c", "n1", 1)}, 4},
		"one of a higher priority":       {[]*corev1.Pod{aPod("a", "n1", 1), aPod("b", "n1", 1), aPod("c", "n1", 1, ranked(200))}, 3},
		"none of a lower priority":       {[]*corev1.Pod{aPod("a", "n1", 3, ranked(100))}, 1},
		"a gang, of which all go":        {[]*corev1.Pod{aPod("l-0", "n1", 1, in("l", 2)), aPod("l-1", "n1", 2, in("l", 2))}, 4},
		"fewer wait than have room":      {nil, 6},
	} {
		bound := aPod("bound", "n1", 1, ranked(100))
		nodes := []*corev1.Node{aNode("n1", 4)}
		if c.running == nil {
			nodes = append(nodes, aNode("n2", 4))
		}
		q := newQuery(nodes, append(c.running, bound), 5, 1)
		q.Gang.Bound, q.Gang.MinMember = []types.UID{bound.UID}, 2
		if got := q.Most(t.Context(), generous); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Thousands of pods may have to go for a gang of hundreds. What is spared of them is asked by amounts, which takes no placement each.
func TestManyVictims(t *testing.T) {
	const size = 300
	nodes, running := crowded(size)
	for cpus, want := range map[int]int{10: 10 * size, 7: 7 * size} {
		choice, verdict := Choose(t.Context(), newQuery(nodes, running, size, cpus), generous)
		if got := len(podsOf(choice.Units)); verdict != Found || got != want {
			t.Errorf("%s: %d pods go for members of %d CPUs, want %d", verdict, got, cpus, want)
		}
	}
}

// A search that is over asks about no unit any more: of ten thousand each answer takes time, while nothing else is scheduled.
func TestSparingEndsWithTheSearch(t *testing.T) {
	var running []*corev1.Pod
	for i := range 8 {
		running = append(running, aPod(fmt.Sprintf("l-%d", i), "n1", 1, in("l", 4)))
	}
	q := newQuery([]*corev1.Node{aNode("n1", 8)}, running, 1, 8)
	ctx, cancel := context.WithCancel(t.Context())
	s := newSearch(ctx, q, generous)
	asked := 0
	spare := func() set {
		return s.spare(s.everything(func(Unit) bool { return true }), s.byImportance(), func(set, Unit) bool {
			if asked++; asked == 3 {
				cancel()
			}
			return false
		})
	}
	if e := spare(); asked != 3 || !slices.Equal(e, s.everything(func(Unit) bool { return true })) {
		t.Errorf("asked %d times, and once more than there was time for; evicted %v", asked, e)
	}
	if spare(); asked != 3 {
		t.Errorf("asked %d times after its time", asked-3)
	}
}

// Where amounts say that a unit cannot be spared, no placement says that it can.
func TestAmountsSpareNoLess(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		var nodes []*corev1.Node
		var running []*corev1.Pod
		for n := range 3 {
			node := fmt.Sprint("n", n)
			nodes = append(nodes, aNode(node, 5+r.IntN(4))) // some have less than what they hold
			for i := range 6 {
				running = append(running, aPod(fmt.Sprintf("%s-%d", node, i), node, 1, in(fmt.Sprint("g", r.IntN(3)), 2)))
			}
		}
		s := newSearch(t.Context(), newQuery(nodes, running, 3, 1+r.IntN(4)), generous)
		all := s.everything(func(Unit) bool { return true })
		placed := s.place(all, placement.Options{})
		if !placed.Fits() {
			continue
		}
		assigned := s.assignedCounts(placed.Placement)
		amounts := s.amountsOn(assigned)
		for i, u := range s.units {
			try := slices.Clone(all)
			for j := range try { // some are spared already
				try[j] = try[j] && r.IntN(4) > 0
			}
			if try[i] = false; s.stillFits(try, u, assigned) && !amounts.suffice(try, u) {
				t.Errorf("seed %d: %s can be spared, and amounts say no", seed, u.Gang)
			}
		}
	}
}

// A node may hold more than it has, such as after a device failed. Who requests none of that is placed there for all that.
func TestNothingIsLackingThatNobodyRequests(t *testing.T) {
	full := aNode("n1", 4)
	full.Status.Allocatable["example.com/device"] = resource.MustParse("1")
	device := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["example.com/device"] = resource.MustParse("2")
	}
	s := newSearch(t.Context(), newQuery([]*corev1.Node{full}, []*corev1.Pod{aPod("a", "n1", 1, device), aPod("b", "n1", 3)}, 1, 3), generous)
	a := s.amountsOn(map[string]map[string]int32{"n1": {s.Gang.Roles[0].Name: 1}})
	if got := fmt.Sprint(a.lacking["n1"]); got != "map[cpu:3000]" {
		t.Errorf("lacking %s", got)
	}
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("2")
	s = newSearch(t.Context(), newQuery([]*corev1.Node{full}, []*corev1.Pod{aPod("a", "n1", 1), aPod("b", "n1", 1)}, 1, 1), generous)
	a = s.amountsOn(map[string]map[string]int32{"n1": {s.Gang.Roles[0].Name: 1}})
	if none, one := make(set, 2), (set{true, false}); a.suffice(none, s.units[0]) || !a.suffice(one, s.units[1]) {
		t.Errorf("a node that is full by number: lacking %v", a.lacking)
	}
}

// Budgets are the users' to write: any number of them, each with a selector as large as an object can be. Those of a namespace cost what they
// may, and keep none of another namespace from counting.
func TestManyBudgets(t *testing.T) {
	var all []*policyv1.PodDisruptionBudget
	for i := range 5000 {
		all = append(all, budget("b", 0))
		all[i].Name = fmt.Sprintf("b%05d", 4999-i)
	}
	large := budget("b", 0)
	large.Name = "a"
	for i := range 1000 {
		large.Spec.Selector.MatchExpressions = append(large.Spec.Selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", i), Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	other := budget("b", 0)
	other.Namespace = "other"
	quiet := aPod("quiet", "n1", 1, guarded("b"))
	quiet.Namespace = "other"
	units := []Unit{{Kind: Single, Pods: []*corev1.Pod{aPod("s", "n1", 1, guarded("b"))}}, {Kind: Single, Pods: []*corev1.Pod{quiet}}}
	b := budgetsOf(units, append(all, large, other))
	if n := len(b.of["s"]); n != 99 { // of the first 100, as the large one is among these
		t.Errorf("%d budgets count in a namespace, want 99", n)
	}
	if b.violations(units[1:]) != 1 || b.violations(units) != 100 {
		t.Errorf("%d and %d pods more than budgets allow", b.violations(units[1:]), b.violations(units))
	}
}

// randomQuery is a small random query.
func randomQuery(r *rand.Rand) Query {
	var nodes []*corev1.Node
	var running []*corev1.Pod
	free := map[string]int{}
	for i := range 1 + r.IntN(3) {
		name := fmt.Sprintf("n%d", i)
		free[name] = 2 + r.IntN(4)
		nodes = append(nodes, aNode(name, free[name]))
		nodes[i].Labels["rack"] = fmt.Sprint("r", i%2)
	}
	budgets := []*policyv1.PodDisruptionBudget{budget("x", int32(r.IntN(2))), budget("y", int32(r.IntN(3)))}
	put := func(name string, change ...func(*corev1.Pod)) bool {
		node := nodes[r.IntN(len(nodes))].Name
		n := 1 + r.IntN(3)
		if free[node] < n {
			return false
		}
		free[node] -= n
		if r.IntN(4) == 0 {
			change = append(change, guarded([]string{"x", "y"}[r.IntN(2)]))
		}
		running = append(running, aPod(name, node, n, append(change, started(r.IntN(5)))...))
		return true
	}
	for g := range r.IntN(3) {
		gang, size, priority := fmt.Sprintf("g%d", g), 2+r.IntN(3), int32(r.IntN(3))
		minimum := 1 + r.IntN(size)
		for m := range size {
			put(fmt.Sprintf("%s-%d", gang, m), in(gang, minimum), ranked(priority))
		}
	}
	for i := range r.IntN(7) {
		put(fmt.Sprintf("s%d", i), ranked(int32(r.IntN(4)*50)))
	}
	q := newQuery(nodes, running, 1+int32(r.IntN(4)), 1+r.IntN(3), budgets...)
	if r.IntN(3) == 0 {
		q.Gang.Roles = append(q.Gang.Roles, placement.Role{Name: "chief", Pod: aPod("c", "", 1+r.IntN(4), ranked(100)), Count: 1})
	}
	if r.IntN(3) == 0 {
		q.Gang.Topology.Required = "rack"
	}
	return q
}

// Room is made in one domain, where all members must share one: a free node elsewhere spares nobody.
func TestVictimsOfOneDomain(t *testing.T) {
	var nodes []*corev1.Node
	for i, rack := range []string{"r1", "r1", "r2", "r2", "r3"} {
		nodes = append(nodes, aNode(fmt.Sprint("n", i+1), 4))
		nodes[i].Labels["rack"] = rack
	}
	running := []*corev1.Pod{aPod("costly", "n2", 4, ranked(90)), aPod("cheap-0", "n3", 4, ranked(10)), aPod("cheap-1", "n4", 4, ranked(10))}
	q := newQuery(nodes, running, 2, 4)
	q.Gang.Topology.Required = "rack"
	if c, verdict := Choose(t.Context(), q, generous); verdict != Found || victims(c) != "cheap-0 cheap-1" {
		t.Errorf("%s: %s has to go", verdict, victims(c))
	}
	q.Gang.Topology.Required = ""
	if c, verdict := Choose(t.Context(), q, generous); verdict != Found || victims(c) != "" {
		t.Errorf("%s: %s has to go without the rule", verdict, victims(c))
	}
}

// brute tries every set of units.
func brute(t *testing.T, q Query) (best Cost, found bool) {
	t.Helper()
	b := budgetsOf(q.Candidates.Units, q.Budgets)
	for bits := range 1 << len(q.Candidates.Units) {
		var units []Unit
		for i, u := range q.Candidates.Units {
			if bits&(1<<i) != 0 {
				units = append(units, u)
			}
		}
		cost := costOf(units, b)
		if !whole(q, units) || found && cost.Compare(best) >= 0 || !enough(t, q, units) {
			continue
		}
		best, found = cost, true
	}
	return best, found
}

// whole reports whether a set breaks no gang.
func whole(q Query, units []Unit) bool {
	gangs, above := map[string]bool{}, map[string]int{}
	for _, u := range units {
		switch u.Kind {
		case Single:
		case Whole:
			gangs[u.Gang] = true
		case AboveMin:
			above[u.Gang]++
		}
	}
	for gang, n := range above {
		if gangs[gang] || n > q.Candidates.Spare[gang] {
			return false
		}
	}
	return true
}

func enough(t *testing.T, q Query, units []Unit) bool {
	t.Helper()
	r := placement.Place(t.Context(), q.Cluster.Without(gang.UIDs(podsOf(units))...), q.Gang, placement.Options{Budget: generous})
	if !r.Fits() && !r.Impossible() {
		t.Fatal("not decided")
	}
	return r.Fits()
}

// Of all sets that are enough and break no gang the cheapest is chosen, and none
// if there is none.
func TestTheCheapestSetIsChosen(t *testing.T) {
	chosen := 0
	for seed := range uint64(400) {
		q := randomQuery(rand.New(rand.NewPCG(seed, 1)))
		if len(q.Candidates.Units) > 11 {
			continue
		}
		want, possible := brute(t, q)
		choice, verdict := Choose(t.Context(), q, generous)
		if possible != (verdict == Found) {
			t.Fatalf("seed %d: %s, want found: %v", seed, verdict, possible)
		}
		if !possible {
			continue
		}
		chosen++
		if choice.Cost.Compare(want) != 0 || !choice.Cheapest {
			t.Errorf("seed %d: %s costs %+v, want %+v", seed, victims(choice), choice.Cost, want)
		}
		if !whole(q, choice.Units) || !enough(t, q, choice.Units) {
			t.Errorf("seed %d: %s breaks a gang, or is not enough", seed, victims(choice))
		}
	}
	if chosen < 100 {
		t.Errorf("only %d questions had an answer: the test proves little", chosen)
	}
}

// Where there are too many candidates to try all, no pod is evicted that need not be, and
// the choice is good in cases in which it is known what is best.
func TestManyCandidates(t *testing.T) {
	var nodes []*corev1.Node
	var running []*corev1.Pod
	for n := range 40 {
		node := fmt.Sprintf("n%02d", n)
		nodes = append(nodes, aNode(node, 8))
		switch {
		case n == 20: // one large pod
			running = append(running, aPod("large-"+node, node, 8, started(-100)))
		case n%4 == 0: // a gang of two nodes
			for i := range 8 {
				running = append(running, aPod(fmt.Sprintf("g-%s-%d", node, i), node, 1, in(fmt.Sprint("g", n/8), 16)))
			}
		case n == 31: // half full
			for i := range 4 {
				running = append(running, aPod(fmt.Sprintf("half-%d", i), node, 1))
			}
		default:
			for i := range 8 {
				running = append(running, aPod(fmt.Sprintf("s-%s-%d", node, i), node, 1, started(i)))
			}
		}
	}
	q := newQuery(nodes, running, 2, 8)
	choice, verdict := Choose(t.Context(), q, generous)
	if got := victims(choice); verdict != Found || got != "half-0 half-1 half-2 half-3 large-n20" {
		t.Errorf("%s: %s", verdict, got)
	}
	for i := range choice.Units {
		if rest := slices.Delete(slices.Clone(choice.Units), i, i+1); enough(t, q, rest) {
			t.Errorf("%s need not go", choice.Units[i].Pods[0].Name)
		}
	}
	if _, verdict := Choose(t.Context(), q, time.Nanosecond); verdict != Unknown {
		t.Errorf("without time: %s", verdict)
	}
}

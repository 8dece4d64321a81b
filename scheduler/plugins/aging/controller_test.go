package aging

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

func ownedBy(kind string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Controller: &yes}}
}

// yard is a controller with a cluster to keep.
type yard struct {
	*Controller
	clock         *clocktesting.FakeClock
	nodes         []*corev1.Node
	pods          []*corev1.Pod
	waiting       []Candidate
	idle          []Candidate
	lacking       map[types.NamespacedName]int
	placed        map[types.UID]bool
	requestedPods []*corev1.Pod // what Cluster was last called with
	roles         func([]*corev1.Pod)
	woken         []string
	looked        int // for places
	lifted        int
}

func newYard(nodes ...*corev1.Node) *yard {
	y := &yard{clock: clocktesting.NewFakeClock(noon), nodes: nodes}
	ledger := claims.NewLedger(y, y, y.clock, audience.Hidden)
	y.Controller = NewController(y, y, ledger, y, order.NewRanking(order.HighestResponseRatio, ledger, order.NewHistory()), y.clock)
	y.after[""] = time.Minute
	return y
}

func (y *yard) Gangs() (all []Candidate) {
	for _, g := range y.waiting {
		g.Waits = true
		all = append(all, g)
	}
	for _, g := range y.idle {
		g.Idle = true
		all = append(all, g)
	}
	return all
}

// Released, Wake, Activate, Lacking, Scheduled and Pod are what the ledger needs.
func (y *yard) Released() { y.lifted++ }

func (y *yard) Wake(types.NamespacedName) {}

func (y *yard) Activate(pods map[string]*corev1.Pod) {
	y.woken = append(y.woken, slices.Sorted(maps.Keys(pods))...)
}

func (y *yard) Lacking(group types.NamespacedName) int { return y.lacking[group] }

func (y *yard) Scheduled(types.NamespacedName) []*corev1.Pod { return nil }

func (y *yard) Pod(pod *corev1.Pod) *corev1.Pod {
	if y.placed[pod.UID] {
		return nil
	}
	return pod
}

// others are claims for whom the gangs must leave their room.
func (y *yard) others(kind claims.Kind, all ...claims.Claim) {
	for i := range all {
		all[i].For, all[i].Node = types.NamespacedName{Namespace: "team", Name: "labels:others"}, "a"
	}
	y.claims.Replace(kind, all)
}

// withheld are the claims on node a that a pod of another gang has to respect.
func (y *yard) withheld(t *testing.T, pods ...*corev1.Pod) []claims.Claim {
	t.Helper()
	nodes := internalcache.NewSnapshot(y.pods, y.nodes).NodeInfos()
	return y.claims.Withheld(nodes, types.NamespacedName{Name: "other"}, pods, nil)
}

// refused has the filter refuse a pod on a node.
func (y *yard) refused(t *testing.T, pod *corev1.Pod, node string) bool {
	t.Helper()
	plugin, err := y.claims.NewPlugin(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := internalcache.NewSnapshot(y.pods, y.nodes).NodeInfos().Get(node)
	if err != nil {
		t.Fatal(err)
	}
	state := framework.NewCycleState()
	filter := plugin.(*claims.Plugin)
	if _, status := filter.PreFilter(t.Context(), state, pod, nil); status.IsSkip() {
		return false
	}
	return !filter.Filter(t.Context(), state, pod, info).IsSuccess()
}

func (y *yard) Cluster(pods []*corev1.Pod) (*placement.Cluster, error) {
	if len(pods) > 0 { // else it is about those that run
		y.looked++
	}
	y.requestedPods = pods
	return cluster(y.nodes, y.pods...), nil
}

func (y *yard) Roles(_ *placement.Cluster, pods []*corev1.Pod, _ gang.Topology) ([]placement.Role, error) {
	if y.roles != nil {
		y.roles(pods)
	}
	return []placement.Role{{Name: "worker", Pod: pods[0], Count: int32(len(pods))}}, nil
}

func (y *yard) reconcile(t *testing.T, after time.Duration) []Reservation {
	t.Helper()
	y.clock.Step(after)
	if err := y.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	return y.Held()
}

func TestOnlyALongWaitGetsAReservation(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	y.waiting = []Candidate{aGang("g", 4, 1)}
	if held := y.reconcile(t, 59*time.Second); len(held) != 0 || y.looked != 0 {
		t.Errorf("after 59s: %d reservations, looked %d times", len(held), y.looked)
	}
	if held := y.reconcile(t, time.Second); len(held) != 1 || len(held[0].Nodes["a"].Members) != 4 {
		t.Errorf("after 60s: %+v", held)
	}
	if y.reconcile(t, 0); y.looked != 1 {
		t.Errorf("looked %d times in one second", y.looked)
	}
	y.after[""] = 0
	y.update(func([]Reservation) []Reservation { return nil }, types.NamespacedName{})
	if y.reconcile(t, time.Hour); y.looked != 1 {
		t.Error("switched off, it looks")
	}
}

// A gang that must share a domain gets a reservation within one, although other nodes come free sooner.
func TestAReservationInOneDomain(t *testing.T) {
	for topology, want := range map[string][]string{"": {"a", "b"}, "rack": {"b", "c"}} {
		in := func(rack string, n *corev1.Node) *corev1.Node { n.Labels["rack"] = rack; return n }
		y := newYard(in("r1", aNode("a", 2)), in("r2", aNode("b", 2)), in("r2", aNode("c", 2)))
		y.pods = slices.Concat(onNode("a", 2), onNode("b", 2), onNode("c", 2, startedAt(noon)))
		g := aGang("g", 4, 1)
		g.Members.Topology = gang.Topology{Required: topology}
		y.waiting = []Candidate{g}
		held := y.reconcile(t, time.Minute)
		if len(held) != 1 || !slices.Equal(slices.Sorted(maps.Keys(held[0].Nodes)), want) {
			t.Errorf("topology %q: %+v, want nodes %v", topology, held, want)
		}
	}
}

func TestOneReservationAPriority(t *testing.T) {
	y := newYard(aNode("a", 4), aNode("b", 4))
	y.pods = append(onNode("a", 4), onNode("b", 4)...)
	older, high := aGang("older", 2, 1), aGang("high", 4, 1)
	older.Since, high.Priority = noon.Add(-time.Hour), 10
	y.waiting = []Candidate{aGang("young", 1, 1), high, older}
	held := y.reconcile(t, time.Minute)
	if len(held) != 2 || held[0].Group != high.Group || held[1].Group != older.Group {
		t.Fatalf("held %+v", held)
	}
	for _, uid := range leaving(held[1]) {
		if slices.Contains(leaving(held[0]), uid) {
			t.Errorf("two gangs wait for the place of %s", uid)
		}
	}
}

func TestAReservationStaysWhereItIs(t *testing.T) {
	y := newYard(aNode("a", 4), aNode("b", 4))
	y.pods = append(onNode("a", 4), onNode("b", 4)...)
	y.waiting = []Candidate{aGang("g", 3, 1)}
	before := y.reconcile(t, time.Minute)
	// The last of b would now be chosen, having run longer than anybody on a.
	for _, pod := range y.pods[4:] {
		startedAt(noon.Add(-24 * time.Hour))(pod)
	}
	y.pods = y.pods[1:]
	if after := y.reconcile(t, time.Minute); len(after) != 1 || !slices.Equal(leaving(after[0]), leaving(before[0])) || y.lifted != 0 {
		t.Errorf("moved from %v to %v", leaving(before[0]), leaving(after[0]))
	}
	y.nodes = y.nodes[1:]
	y.pods = y.pods[3:]
	if after := y.reconcile(t, time.Minute); len(after) != 1 || len(after[0].Nodes["b"].Members) != 3 || y.lifted != 1 {
		t.Errorf("its node is gone: %+v, lifted %d", after, y.lifted)
	}
}

// What the engine refuses a gang for may be no matter of places. Then others get them, each time for longer.
func TestAReservationThatIsNotUsedIsGivenUp(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	y.waiting = []Candidate{aGang("g", 4, 1)}
	if held := y.reconcile(t, time.Minute); len(held) != 1 {
		t.Fatalf("held %+v", held)
	}
	for range 10 { // its places are not free yet
		if held := y.reconcile(t, time.Minute); len(held) != 1 {
			t.Fatalf("held %+v", held)
		}
	}
	y.pods = nil
	if without, want := y.without(t, 166), []int{5, 10, 20, 40, 60}; !slices.Equal(without, want) {
		t.Errorf("it had none for %v minutes, want %v", without, want)
	}
	y.waiting = nil
	if y.reconcile(t, time.Minute); len(y.notUsed.entries) != 1 {
		t.Errorf("remembers %v", y.notUsed.entries)
	}
	if y.reconcile(t, 2*maxUnused); len(y.notUsed.entries) != 0 || len(y.wasteful.entries) != 0 {
		t.Errorf("remembers %v, %v", y.notUsed.entries, y.wasteful.entries)
	}
}

// Who runs longer than promised gets no reserved room for a promise any more.
func TestABrokenPromise(t *testing.T) {
	y := newYard(aNode("a", 4))
	promised := aPod("liar", "a", 1, runsFor(time.Hour+5*time.Minute)) // it began an hour ago
	y.pods = append(onNode("a", 3), promised)
	for _, pod := range y.pods[:3] {
		endsIn(time.Hour)(pod)
	}
	y.waiting = []Candidate{aGang("g", 4, 1)}
	y.reconcile(t, time.Minute)
	y.pods = y.pods[2:]
	short := aPod("short", "", 1, runsFor(time.Minute))
	if y.refused(t, short, "a") {
		t.Error("refused, though it is to end before")
	}
	y.reconcile(t, 7*time.Minute)
	if !y.refused(t, short, "a") {
		t.Error("it may use reserved room for a promise of a namespace that broke one")
	}
}

func TestWhoWasTurnedAwayIsWoken(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	g := aGang("g", 4, 1)
	y.waiting = []Candidate{g}
	y.reconcile(t, time.Minute)
	y.pods = nil
	for range 2 {
		if !y.refused(t, aPod("p", "", 1), "a") {
			t.Error("it may use reserved room")
		}
	}
	y.sweep()
	if len(y.woken) != 0 {
		t.Errorf("woken %v while the gang waits", y.woken)
	}
	y.waiting = nil
	y.sweep()
	if !slices.Equal(y.woken, []string{"team/p"}) || y.lifted != 1 || len(y.Held()) != 0 {
		t.Errorf("woken %v, lifted %d, held %v", y.woken, y.lifted, y.Held())
	}
}

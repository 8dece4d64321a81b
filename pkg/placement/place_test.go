package placement

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
)

func racked(name, rack string) *corev1.Node { return big(name, label("rack", rack)) }

func busy(name, node string, gpus int) *corev1.Pod { return aPod(name, amounts("gpu", gpus), on(node)) }

func TestPlace(t *testing.T) {
	two := []*corev1.Node{big("n1"), big("n2")}
	racks := []*corev1.Node{racked("n1", "a"), racked("n2", "a"), racked("n3", "b"), racked("n4", "b"), racked("n5", "b")}
	w := func(gpus int, options ...podOption) *corev1.Pod {
		return aPod("w", amounts("gpu", gpus), append(options, labelled("job", "j"))...)
	}
	trap := []Role{role("Chief", 1, aPod("c", amounts("gpu", 4))), role("PS", 2, aPod("p", amounts("gpu", 3))), role("Worker", 3, w(2))}
	for name, tc := range map[string]struct {
		nodes  []*corev1.Node
		pods   []*corev1.Pod
		gang   Gang
		ignore Constraints
		want   Proof
		placed map[string]int32
		bound  *Bound
		domain string
	}{
		"packing trap": {nodes: two, gang: Gang{Roles: trap}, want: Witness, placed: map[string]int32{"Chief": 1, "PS": 2, "Worker": 3}},
		"packing trap with one more": {nodes: two, gang: Gang{Roles: append([]Role{role("Eval", 1, aPod("e", amounts("gpu", 1)))}, trap...)}, want: CountingBound,
			placed: map[string]int32{"Chief": 1, "PS": 2, "Worker": 2, "Eval": 1}, bound: &Bound{Resource: gpu, Need: 17, Have: 16}},
		"enough in all, but in pieces": {nodes: two, gang: Gang{Roles: []Role{role("A", 2, w(5)), role("B", 2, aPod("b", amounts("gpu", 3))), role("C", 1, aPod("c", nil))}}, want: Witness,
			placed: map[string]int32{"A": 2, "B": 2, "C": 1}},
		"filled to the brim": {nodes: two, gang: Gang{Roles: []Role{role("A", 1, w(5)), role("B", 3, aPod("b", amounts("gpu", 3)))}}, want: Witness, placed: map[string]int32{"A": 1, "B": 3}},
		"enough in all, but not in one piece": {nodes: two, gang: Gang{Roles: []Role{role("A", 2, w(5)), role("B", 1, aPod("b", amounts("gpu", 4)))}}, want: Exhausted,
			placed: map[string]int32{"A": 2, "B": 0}},
		"short of slots": {nodes: two, gang: Gang{Roles: []Role{role("Worker", 4, w(5))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 2}, bound: &Bound{Role: "Worker", Need: 4, Have: 2}},
		"elastic": {nodes: two, gang: Gang{MinMember: 2, Roles: []Role{role("Worker", 4, w(5))}}, want: Witness, placed: map[string]int32{"Worker": 2}},
		"elastic with a bound member": {nodes: two, pods: []*corev1.Pod{busy("w-0", "n1", 5)},
			gang: Gang{MinMember: 2, Bound: []types.UID{"uid-w-0"}, Roles: []Role{role("Worker", 3, w(5))}}, want: Witness, placed: map[string]int32{"Worker": 1}},
		"minimum of a role": {nodes: two, gang: Gang{MinMember: 2, Roles: []Role{{Name: "PS", Count: 3, Min: 3, Pod: w(5)}, role("Worker", 2, aPod("x", amounts("gpu", 1)))}},
			want: CountingBound, placed: map[string]int32{"PS": 2, "Worker": 2}, bound: &Bound{Role: "PS", Need: 3, Have: 2}},
		"nothing to place": {nodes: two, gang: Gang{}, want: Witness, placed: map[string]int32{}},
		"no node":          {gang: Gang{Roles: []Role{role("Worker", 1, w(1))}}, want: CountingBound, placed: map[string]int32{"Worker": 0}, bound: &Bound{Role: "Worker", Need: 1}},
		"more nodes than anti-affinity finds": {nodes: two, gang: Gang{Roles: []Role{role("Worker", 3, w(1, apart(corev1.LabelHostname, "job", "j")))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 2}, bound: &Bound{Role: "Worker", Need: 3, Have: 2, Constraint: PodAntiAffinity}},
		"anti-affinity ignored": {nodes: two, ignore: sets.New(PodAntiAffinity), gang: Gang{Roles: []Role{role("Worker", 3, w(1, apart(corev1.LabelHostname, "job", "j")))}}, want: Witness,
			placed: map[string]int32{"Worker": 3}},
		"one in each rack": {nodes: racks, gang: Gang{Roles: []Role{role("Worker", 3, w(1, apart("rack", "job", "j")))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 2}, bound: &Bound{Role: "Worker", Need: 3, Have: 2, Constraint: PodAntiAffinity}},
		"racks in use": {nodes: racks, pods: []*corev1.Pod{busy("x", "n5", 1)}, gang: Gang{Topology: gang.Topology{Required: "rack"}, Roles: []Role{role("Worker", 3, w(8))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 2}, bound: &Bound{Role: "Worker", Need: 3, Have: 2, Domain: "b"}, domain: "b"},
		"rack ignored": {nodes: racks, pods: []*corev1.Pod{busy("x", "n5", 1)}, ignore: sets.New(Topology),
			gang: Gang{Topology: gang.Topology{Required: "rack"}, Roles: []Role{role("Worker", 3, w(8))}}, want: Witness, placed: map[string]int32{"Worker": 3}},
		"the tighter rack": {nodes: racks, gang: Gang{Topology: gang.Topology{Required: "rack"}, Roles: []Role{role("Worker", 2, w(8))}}, want: Witness, placed: map[string]int32{"Worker": 2}, domain: "a"},
		"the rack of the bound member": {nodes: racks, pods: []*corev1.Pod{busy("w-0", "n1", 8)},
			gang: Gang{Topology: gang.Topology{Required: "rack"}, Bound: []types.UID{"uid-w-0"}, Roles: []Role{role("Worker", 2, w(8))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 1}, bound: &Bound{Role: "Worker", Need: 2, Have: 1, Domain: "a"}, domain: "a"},
		"together in a rack": {nodes: racks, gang: Gang{Roles: []Role{role("Worker", 3, w(8, affineTo("rack", "job", "j")))}}, want: Witness, placed: map[string]int32{"Worker": 3}, domain: "b"},
		"where the others are": {nodes: racks, pods: []*corev1.Pod{aPod("ps", nil, on("n1"), labelled("app", "ps"))},
			gang: Gang{Roles: []Role{role("Worker", 3, w(8, affineTo("rack", "app", "ps")))}}, want: CountingBound, placed: map[string]int32{"Worker": 2}, bound: &Bound{Role: "Worker", Need: 3, Have: 2}},
		"workers follow their parameter server": {nodes: racks, gang: Gang{Roles: []Role{
			role("PS", 1, aPod("p", amounts("gpu", 1), labelled("app", "ps"))), role("Worker", 2, w(8, affineTo("rack", "app", "ps"))),
		}}, want: Witness, placed: map[string]int32{"PS": 1, "Worker": 2}},
		"spread": {nodes: racks, gang: Gang{Roles: []Role{role("Worker", 5, w(8, spread("rack", 1, "job", "j")))}}, want: Witness, placed: map[string]int32{"Worker": 5}},
		"spread too even": {nodes: racks, pods: []*corev1.Pod{busy("x", "n1", 8)}, gang: Gang{Roles: []Role{role("Worker", 4, w(8, spread("rack", 1, "job", "j")))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 3}, bound: &Bound{Role: "Worker", Need: 4, Have: 3, Constraint: TopologySpread}},
		"host ports": {nodes: two, gang: Gang{Roles: []Role{role("Worker", 3, w(1, hostPort(2222)))}}, want: CountingBound,
			placed: map[string]int32{"Worker": 2}, bound: &Bound{Role: "Worker", Need: 3, Have: 2, Constraint: HostPort}},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(Objects{Nodes: tc.nodes, Pods: tc.pods})
			got := Place(t.Context(), c, tc.gang, Options{Ignore: tc.ignore, Budget: time.Minute})
			want := Result{Proof: tc.want, Placed: tc.placed, Bound: tc.bound, Domain: tc.domain, Level: got.Level, Placement: got.Placement, Sequence: got.Sequence}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if g := tc.gang; g.Topology.Required == "" && tc.ignore == nil && !inOrder(c, g, got.Placement) {
				t.Errorf("%v violates a constraint", got.Placement)
			}
		})
	}
}

func TestPlaceKeepsOffDevicesItDoesNotNeed(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("gpu1"), big("gpu2"), aNode("cpu", amounts("cpu", 8))}})
	for name, g := range map[string]Gang{
		"one role":  {Roles: []Role{role("PS", 2, aPod("p", amounts("cpu", 4)))}},
		"two roles": {Roles: []Role{role("PS", 2, aPod("p", amounts("cpu", 4))), role("Worker", 2, aPod("w", amounts("gpu", 4)))}},
		"far":       {Roles: []Role{role("PS", 2, aPod("p", amounts("cpu", 4))), workers(1, spread(corev1.LabelHostname, 1, "job", "j"))}},
	} {
		nodes := map[string]int{}
		for _, a := range Place(t.Context(), c, g, Options{}).Placement {
			nodes[a.Role+"@"+a.Node]++
		}
		if nodes["PS@cpu"] != 2 {
			t.Errorf("%s: %v, want both PS on cpu", name, nodes)
		}
		if nodes["Worker@gpu1"] == 1 && nodes["Worker@gpu2"] == 1 {
			t.Errorf("%s: two workers of 4 are spread over two nodes of 8: %v", name, nodes)
		}
	}
}

func TestPlaceStopsWithItsBudget(t *testing.T) {
	c := fleet(2000)
	g := Gang{Roles: []Role{
		role("A", 40, aPod("a", amounts("cpu", 3), labelled("r", "a"), spread("rack", 1, "r", "b"))),
		role("B", 40, aPod("b", amounts("cpu", 5), labelled("r", "b"), spread("topology.kubernetes.io/zone", 1, "r", "c"), affineTo("rack", "r", "a"))),
		role("C", 40, aPod("c", amounts("gpu", 3), labelled("r", "c"), apart("rack", "r", "a"))),
	}}
	start := time.Now()
	r := Place(t.Context(), c, g, Options{Budget: 50 * time.Millisecond})
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("%s after %v, the budget was 50ms", r.Proof, d)
	}
	if r.Impossible() && r.Proof == Exhausted {
		t.Errorf("exhausted in 50ms?")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Place(ctx, c, g, Options{Budget: time.Hour}); r.Proof == Exhausted {
		t.Error("a cancelled search proves nothing")
	}
}

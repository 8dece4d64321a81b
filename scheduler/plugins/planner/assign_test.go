package planner

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

func TestAssign(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	}
	members := &memberRoles{roles: []placement.Role{{Name: "a"}, {Name: "b"}}, pods: [][]*corev1.Pod{{pod("a0"), pod("a1")}, {pod("b0")}}}
	at := func(role string, member int32, node string) placement.Assignment {
		return placement.Assignment{Role: role, Member: member, Node: node}
	}
	placed := []placement.Assignment{at("a", 0, "n1"), at("a", 1, "n2"), at("b", 0, "n3")}
	for name, tt := range map[string]struct {
		sequence        []placement.Assignment
		nodes, expected string
	}{
		"in any order":     {nil, "map[a0:n1 a1:n2 b0:n3]", "[]"},
		"in one order":     {[]placement.Assignment{at("b", 0, "n3"), at("a", 1, "n2"), at("a", 0, "n1")}, "map[a0:n2 a1:n1 b0:n3]", "[b0 a0 a1]"},
		"as they are made": {placed, "map[a0:n1 a1:n2 b0:n3]", "[a0 a1 b0]"},
	} {
		nodes, sequence := members.assign(placement.Result{Placement: placed, Sequence: tt.sequence})
		if fmt.Sprint(nodes) != tt.nodes || fmt.Sprint(sequence) != tt.expected {
			t.Errorf("%s: %v in the order %v, want %s in the order %s", name, nodes, sequence, tt.nodes, tt.expected)
		}
	}
}

// Members that are nominated for nodes of the plan get these.
func TestAssignToNominated(t *testing.T) {
	pod := func(name, nominated string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)}, Status: corev1.PodStatus{NominatedNodeName: nominated}}
	}
	members := &memberRoles{pods: [][]*corev1.Pod{{pod("a0", "n3"), pod("a1", ""), pod("a2", "n1"), pod("a3", "n1")}, {pod("b0", "n2")}}}
	nodes := map[types.UID]string{"a0": "n1", "a1": "n2", "a2": "n3", "a3": "n4", "b0": "n5"}
	members.swapToNominated(nodes)
	if got, want := fmt.Sprint(nodes), "map[a0:n3 a1:n2 a2:n1 a3:n4 b0:n5]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

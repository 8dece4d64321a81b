package placement

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// requestingMany is a pod that requests so much each of many resources.
func requestingMany(names int, amount string) *corev1.Pod {
	list := corev1.ResourceList{}
	for i := range names {
		list[corev1.ResourceName(fmt.Sprintf("a/r%05d", i))] = resource.MustParse(amount)
	}
	return aPod("w", list)
}

// What is kept of a node does not grow with what one pod requests, and none of it seems to be the only reason.
func TestMatrixOfManyResources(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", amounts("cpu", 4)), aNode("n2", amounts("cpu", 4))}})
	m := c.Matrix(requestingMany(20_000, "1"))
	for _, row := range m.Rows {
		if len(row.Violations) != maxNamed {
			t.Errorf("%d violations on %s, want %d", len(row.Violations), row.Node, maxNamed)
		}
	}
	if len(m.Constraints) != maxNamed || len(m.Eligible()) > 0 || len(m.OnlyBlocker(m.Constraints[0])) > 0 {
		t.Errorf("constraints %v, eligible %v", m.Constraints, m.Eligible())
	}
	if want := "19996 more resources that no node has"; len(m.Unmodelled) != 1 || m.Unmodelled[0] != want {
		t.Errorf("not modelled: %v, want %s", m.Unmodelled, want)
	}
	if few := c.Matrix(requestingMany(maxNamed, "1")); len(few.Unmodelled) > 0 {
		t.Errorf("not modelled of few: %v", few.Unmodelled)
	}
	g := Gang{Roles: []Role{role("w", 2, requestingMany(20_000, "1"))}}
	if r := Place(t.Context(), c, g, Options{Budget: budgetForTests}); !r.Impossible() || len(r.Unmodelled) > 0 {
		t.Errorf("%s, not modelled %v: want a proof, since a node without one of them is enough", r.Proof, r.Unmodelled)
	}
}

// surveyed counts how often the nodes of a role are looked at while something is measured.
func surveyed(s *survey) *int {
	calls, usableBy := 0, s.usableBy
	s.usableBy = func(r Role) (*rules, []bool) { calls++; return usableBy(r) }
	return &calls
}

// Amounts of zero are never short, however many there are, and the nodes of a role are found once for all resources.
func TestLackingOfManyResources(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", amounts("cpu", 4))}})
	pod := requestingMany(20_000, "0")
	pod.Spec.NodeSelector = map[string]string{"no": "node"}
	g := Gang{Roles: []Role{role("w", 2, pod)}}
	found := Place(t.Context(), c, g, Options{Budget: budgetForTests})
	s := newSurvey(t.Context(), c, g)
	calls := surveyed(s)
	if r := s.lacking(found); len(r.Nodes) > 0 || *calls > 2 {
		t.Errorf("%d rooms were measured, the last is %s", *calls, r)
	}

	// Of resources that nodes have, all are measured, until the time ends.
	has := amounts("cpu", 4)
	for name := range requestingMany(100, "1").Spec.Containers[0].Resources.Requests {
		has[name] = resource.MustParse("2")
	}
	c, g = NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", has)}}), Gang{Roles: []Role{role("v", 1, aPod("v", amounts("cpu", 1))), role("w", 2, requestingMany(100, "1"))}}
	s = newSurvey(t.Context(), c, g)
	calls = surveyed(s)
	s.lacking(Result{Placed: map[string]int32{"v": 1}})
	if *calls < 100 {
		t.Errorf("%d rooms were measured, want one a resource", *calls)
	}
	a, _ := s.usableBy(g.Roles[0])
	if b, _ := s.usableBy(g.Roles[0]); a != b {
		t.Error("the nodes of a role are looked at for each resource")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = newSurvey(ctx, c, g)
	calls = surveyed(s)
	if s.lacking(Result{Placed: map[string]int32{"v": 1}}); *calls > 1 {
		t.Errorf("%d rooms were measured when the time had ended", *calls)
	}
}

// The number of resources is looked at before each of them is, and so is the clock.
func TestSuspectsOfManyResources(t *testing.T) {
	has := amounts("cpu", 4)
	pod := requestingMany(maxLifts+1, "2")
	for name := range pod.Spec.Containers[0].Resources.Requests {
		has[name] = resource.MustParse("1")
	}
	c := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", has)}})
	x := newCauseSearch(t.Context(), c, Gang{Roles: []Role{role("w", 1, pod)}}, Options{})
	if load, nodes, ok := x.suspects(); ok || load != nil || nodes != nil {
		t.Errorf("%d and %d constraints of more than may be tried, %t", len(load), len(nodes), ok)
	}
	x = newCauseSearch(t.Context(), c, Gang{Roles: []Role{role("w", 1, requestingMany(3, "2"))}}, Options{})
	if _, _, ok := x.suspects(); !ok {
		t.Error("three resources are too many")
	}
	x.done = func() bool { return true }
	if load, _, ok := x.suspects(); ok || load != nil {
		t.Error("suspects were collected when the time had ended")
	}
}

package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSpreadCounts(t *testing.T) {
	node := func(name, zone string, options ...nodeOption) *corev1.Node {
		return aNode(name, amounts("cpu", 8), append([]nodeOption{label("zone", zone)}, options...)...)
	}
	pods := []*corev1.Pod{
		aPod("x1", amounts("cpu", 1), on("n2"), labelled("app", "x")), aPod("x2", amounts("cpu", 1), on("n2"), labelled("app", "x")), aPod("y", amounts("cpu", 1), on("n1"), labelled("app", "y")),
	}
	c := NewCluster(Objects{Nodes: []*corev1.Node{node("n1", "a"), node("n2", "b"), node("n3", "c", label("class", "old")), aNode("n4", amounts("cpu", 8))}, Pods: pods})
	three := int32(3)
	for _, test := range []struct {
		name    string
		pod     *corev1.Pod
		domains string
		least   int
		full    string
	}{
		{"of its own kind", aPod("m", nil, labelled("app", "x"), spread("zone", 1, "app", "x")), "[{a 0} {b 2} {c 0}]", 0, "b"},
		{"a larger skew", aPod("m", nil, labelled("app", "x"), spread("zone", 3, "app", "x")), "[{a 0} {b 2} {c 0}]", 0, ""},
		{"of another kind", aPod("m", nil, spread("zone", 1, "app", "x")), "[{a 0} {b 2} {c 0}]", 0, "b"},
		{"of another kind, a larger skew", aPod("m", nil, spread("zone", 2, "app", "x")), "[{a 0} {b 2} {c 0}]", 0, ""},
		{"of another kind, not its own", aPod("m", nil, labelled("app", "y"), spread("zone", 1, "app", "y")), "[{a 1} {b 0} {c 0}]", 0, "a"},
		{"on the nodes that it selects", aPod("m", nil, labelled("app", "x"), spread("zone", 1, "app", "x"), selecting("class", "old")), "[{c 0}]", 0, ""},
		{"fewer domains than there must be", aPod("m", nil, labelled("app", "x"), spread("zone", 1, "app", "x"), func(p *corev1.Pod) {
			selecting("zone", "b")(p)
			p.Spec.TopologySpreadConstraints[0].MinDomains = &three
		}), "[{b 2}]", 0, "b"},
		{"one domain", aPod("m", nil, labelled("app", "x"), spread("zone", 1, "app", "x"), selecting("zone", "b")), "[{b 2}]", 2, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := c.SpreadCounts(role("w", 2, test.pod))
			if len(all) != 1 {
				t.Fatalf("got %d constraints", len(all))
			}
			full := ""
			for _, d := range all[0].Domains {
				if all[0].Full(d) {
					full += d.Value
				}
			}
			if got := fmt.Sprint(all[0].Domains); got != test.domains || all[0].Least != test.least || full != test.full {
				t.Errorf("got %s, least %d, full %q", got, all[0].Least, full)
			}
		})
	}
	s := c.SpreadCounts(role("w", 2, aPod("m", nil, labelled("app", "x"), spread("zone", 1, "app", "x"))))[0]
	if d, ok := s.In(pods[0]); !ok || d.Value != "b" {
		t.Errorf("a pod that counts is in %v, %t", d, ok)
	}
	if _, ok := s.In(pods[2]); ok {
		t.Error("a pod of another kind counts")
	}
	if _, ok := s.Of("n4"); ok {
		t.Error("a node without the label counts")
	}
}

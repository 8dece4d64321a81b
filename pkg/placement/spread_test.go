package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// constraint changes the last spread constraint of a pod.
func constraint(change func(*corev1.TopologySpreadConstraint)) podOption {
	return func(p *corev1.Pod) {
		change(&p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1])
	}
}

// Two zones of two nodes, each node with room for four; what the fields of a constraint mean for a whole gang.
func TestPlaceSpreads(t *testing.T) {
	nodes := func(options ...nodeOption) []*corev1.Node {
		out := []*corev1.Node{big("a1", label("zone", "a")), big("a2", label("zone", "a")), big("b1", label("zone", "b")), big("b2", label("zone", "b"))}
		for _, o := range options {
			o(out[3])
		}
		return out
	}
	w := func(options ...podOption) *corev1.Pod {
		return aPod("w", amounts("gpu", 2), append([]podOption{labelled("job", "j"), labelled("rev", "2"), spread("zone", 1, "job", "j")}, options...)...)
	}
	old := func(nodes ...string) (out []*corev1.Pod) {
		for i, n := range nodes {
			out = append(out, aPod(fmt.Sprint("old-", i), nil, on(n), labelled("job", "j"), labelled("rev", "1")))
		}
		return out
	}
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		pod   *corev1.Pod
		most  int32 // members that fit
	}{
		"evenly":                                   {nodes: nodes(), pod: w(), most: 16},
		"three are ahead in one zone":              {nodes: nodes(), pods: old("a1", "a1", "a2"), pod: w(), most: 14},
		"those of another revision do not count":   {nodes: nodes(), pods: old("a1", "a1", "a2"), pod: w(constraint(matchKeys("rev"))), most: 16},
		"a key that the pod does not have":         {nodes: nodes(), pods: old("a1", "a1", "a2"), pod: w(constraint(matchKeys("nope"))), most: 14},
		"a node less in one zone":                  {nodes: nodes(cordoned), pod: w(), most: 9},
		"a zone is lost":                           {nodes: nodes()[:2], pod: w(), most: 8},
		"two zones are requested, one is there":    {nodes: nodes()[:2], pod: w(constraint(minDomains(2))), most: 1},
		"an unusable zone holds the others back":   {nodes: append(nodes()[:2], big("b1", label("zone", "b"), cordoned)), pod: w(), most: 1},
		"unless taints are honoured":               {nodes: append(nodes()[:2], big("b1", label("zone", "b"), cordoned)), pod: w(constraint(taints(&honor))), most: 8},
		"a zone that is not selected":              {nodes: nodes(), pod: w(selecting("zone", "a")), most: 8},
		"a zone that is not selected, but counted": {nodes: nodes(), pod: w(selecting("zone", "a"), constraint(affinities(&ignore))), most: 1},
		"a preference is no constraint":            {nodes: nodes(cordoned), pod: w(constraint(anyway)), most: 12},
		"a node without the label":                 {nodes: append(nodes(), big("x")), pod: w(), most: 16},
		"over nodes and zones":                     {nodes: nodes(), pods: old("a1"), pod: w(spread(corev1.LabelHostname, 1, "job", "j")), most: 16},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(Objects{Nodes: tc.nodes, Pods: tc.pods})
			for _, n := range []int32{tc.most, tc.most + 1} {
				r := Place(t.Context(), c, Gang{Roles: []Role{role("W", n, tc.pod)}}, Options{Budget: budgetForTests})
				if r.Fits() != (n <= tc.most) {
					t.Errorf("%d members: %s %+v, %d placed", n, r.Proof, r.Bound, r.Placed["W"])
				}
			}
		})
	}
}

func matchKeys(keys ...string) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = keys }
}

func minDomains(n int32) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &n }
}

func taints(p *corev1.NodeInclusionPolicy) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = p }
}

func affinities(p *corev1.NodeInclusionPolicy) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = p }
}

func anyway(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

// A selector that does not parse rejects the pod everywhere, as the scheduler does.
func TestPlaceSpreadsByABrokenSelector(t *testing.T) {
	pod := aPod("w", nil, spread("zone", 1, "job", "j"), constraint(func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "job", Operator: "Near"}}}
	}))
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("n", label("zone", "a"))}})
	if r := Place(t.Context(), c, Gang{Roles: []Role{role("W", 1, pod)}}, Options{Budget: budgetForTests}); !r.Impossible() {
		t.Errorf("%s", r.Proof)
	}
	if row, _ := c.Matrix(pod).Row("n"); len(row.Violations) != 1 || row.Violations[0].Constraint != TopologySpread {
		t.Errorf("%+v", row.Violations)
	}
}

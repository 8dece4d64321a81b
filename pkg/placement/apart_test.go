package placement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestApart(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	inZone := func(name, zone string) *corev1.Node {
		return aNode(name, amounts("gpu", 8, "cpu", 64), label(corev1.LabelTopologyZone, zone))
	}
	member := func(options ...podOption) *corev1.Pod {
		return aPod("m", amounts("gpu", 8), append([]podOption{labelled("job", "gang")}, options...)...)
	}
	nodes := []*corev1.Node{inZone("n1", "a"), inZone("n2", "a"), inZone("n3", "b"), inZone("n4", "c")}
	names := []string{"n1", "n2", "n3", "n4"}
	busy := aPod("busy", amounts("gpu", 8), on("n4"))
	mate := aPod("mate", amounts("gpu", 1), on("n3"), labelled("job", "gang"))
	byZone, byNode := apart(zone, "job", "gang"), apart(corev1.LabelHostname, "job", "gang")
	for _, test := range []struct {
		name    string
		pods    []*corev1.Pod
		nodes   []*corev1.Node
		gang    Gang
		key     string
		members int32
		domains []string
		short   bool
	}{
		{"more than zones", nil, nodes, Gang{Roles: []Role{role("w", 4, member(byZone))}}, zone, 4, []string{"a", "b", "c"}, true},
		{"as many as zones", nil, nodes, Gang{Roles: []Role{role("w", 3, member(byZone))}}, zone, 3, []string{"a", "b", "c"}, false},
		{"no more count than the gang needs", nil, nodes, Gang{Roles: []Role{role("w", 4, member(byZone))}, MinMember: 3}, zone, 3, []string{"a", "b", "c"}, false},
		{"a zone is in use", []*corev1.Pod{busy}, nodes, Gang{Roles: []Role{role("w", 3, member(byZone))}}, zone, 3, []string{"a", "b"}, true},
		{"a zone has a member", []*corev1.Pod{mate}, nodes, Gang{Roles: []Role{role("w", 3, member(byZone))}, Bound: []types.UID{mate.UID}}, zone, 3, []string{"a", "c"}, true},
		{"a node without the label", nil, append(slices.Clone(nodes), aNode("n0", amounts("gpu", 8))), Gang{Roles: []Role{role("w", 4, member(byZone))}}, zone, 4, []string{"a", "b", "c"}, false},
		{"the label with the fewest domains", nil, nodes, Gang{Roles: []Role{role("w", 4, member(byNode, byZone))}}, zone, 4, []string{"a", "b", "c"}, true},
		{"several roles", nil, nodes, Gang{Roles: []Role{role("m", 1, member(byZone)), role("w", 3, member(byZone))}}, zone, 4, []string{"a", "b", "c"}, true},
		{"a role that is not kept off", nil, nodes, Gang{Roles: []Role{role("m", 1, aPod("m", amounts("cpu", 1))), role("w", 3, member(byZone))}, MinMember: 2}, zone, 1, []string{"a", "b", "c"}, false},
		{"of a role that is not kept off, and more than zones", nil, nodes, Gang{Roles: []Role{role("m", 1, aPod("m", amounts("cpu", 1))), role("w", 10, member(byZone))}, MinMember: 6}, zone, 5, []string{"a", "b", "c"}, true},
		{"the minimum of the role", nil, nodes, Gang{Roles: []Role{role("m", 4, aPod("m", amounts("cpu", 1))), {Name: "w", Pod: member(byZone), Count: 4, Min: 2}}, MinMember: 4}, zone, 2, []string{"a", "b", "c"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewCluster(Objects{Nodes: test.nodes, Pods: test.pods})
			got, ok := c.Apart(test.gang, test.gang.Roles[len(test.gang.Roles)-1], names)
			if !ok || got.Key != test.key || got.Members != test.members || !slices.Equal(got.Domains, test.domains) || got.All != 3 || got.Short() != test.short {
				t.Errorf("got %+v, short %t", got, got.Short())
			}
		})
	}
	c := NewCluster(Objects{Nodes: nodes})
	if got, ok := c.Apart(Gang{}, role("w", 4, member(apart(zone, "job", "other"))), names); ok {
		t.Errorf("members that keep off others are apart: %+v", got)
	}
}

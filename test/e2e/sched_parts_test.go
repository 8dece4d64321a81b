package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// sliceLabel is the label of pods by which a gang has parts.
const sliceLabel = "example.com/slice"

// parts is how a dialect has the rule that the members of each part share a domain of their own.
type parts struct {
	// in makes a pod a member of a part.
	in func(pod *corev1.Pod, slice string)
	// rule adds the rule to the spec of the group object; nil where the pods have it.
	rule func(spec map[string]any, slices []string)
	// joins has a node join a rack; nil where its label does.
	joins func(g team, node, rack string)
	// which names the members of a part, and domain what they share, in the scheduler's messages.
	which, domain func(slice string) string
}

// inSlices are parts by a label of their own, and the rule in an annotation of the pods: every dialect reads it.
func inSlices() parts {
	return parts{
		in: func(pod *corev1.Pod, slice string) {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, sliceLabel, slice)
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gang.TopologyParts, `[{"by":["`+sliceLabel+`"],"required":"`+rackLabel+`"}]`)
		},
		which:  func(slice string) string { return sliceLabel + "=" + slice },
		domain: func(string) string { return "value of " + rackLabel },
	}
}

// inSubGroups are KAI's own parts.
func inSubGroups() parts {
	const label = "kai.scheduler/subgroup-name"
	return parts{
		in: func(pod *corev1.Pod, slice string) { metav1.SetMetaDataLabel(&pod.ObjectMeta, label, slice) },
		rule: func(spec map[string]any, slices []string) {
			var groups []any
			for _, slice := range slices {
				groups = append(groups, map[string]any{"name": slice, "topologyConstraint": map[string]any{"requiredTopologyLevel": rackLabel}})
			}
			spec["subGroups"] = groups
		},
		which:  func(slice string) string { return label + "=" + slice },
		domain: func(string) string { return "value of " + rackLabel },
	}
}

// inPolicies are Volcano's own parts, by HyperNodes with the names of the racks.
func inPolicies() parts {
	return parts{
		joins: func(g team, node, rack string) {
			patch := []map[string]any{{"op": "add", "path": "/spec/members/-", "value": map[string]any{"type": "Node", "selector": map[string]any{"exactMatch": map[string]any{"name": node}}}}}
			text, err := json.Marshal(patch)
			must(g.t, err)
			_, err = g.dynamic.Resource(hyperNodes()).Patch(g.t.Context(), rack, types.JSONPatchType, text, metav1.PatchOptions{})
			must(g.t, err)
		},
		in: func(pod *corev1.Pod, slice string) { metav1.SetMetaDataLabel(&pod.ObjectMeta, sliceLabel, slice) },
		rule: func(spec map[string]any, _ []string) {
			spec["subGroupPolicy"] = []any{map[string]any{
				"name": "slices", "matchLabelKeys": []any{sliceLabel}, "networkTopology": map[string]any{"mode": "hard", "highestTierAllowed": int64(1)},
			}}
		},
		which:  func(slice string) string { return sliceLabel + "=" + slice },
		domain: func(string) string { return "HyperNode of tier 1 or lower" },
	}
}

// declareParts declares a gang of so many members in each of some parts, and creates them.
func (g team) declareParts(p parts, name string, each int, in ...string) (members map[string][]string) {
	t := g.t
	t.Helper()
	all := each * len(in)
	if p.rule == nil {
		g.declare(name, all)
	} else {
		g.declareGroup(name, all, func(group *unstructured.Unstructured) {
			spec, _ := group.Object["spec"].(map[string]any)
			p.rule(spec, in)
		})
	}
	members = map[string][]string{}
	for i, member := range g.names(name, all) {
		slice := in[i%len(in)] // by turns, so that no order of creation has the parts together
		pod := plain(member, g.scheduler, "1")
		g.setGroup(pod, name, all)
		p.in(pod, slice)
		g.create(t, pod)
		members[slice] = append(members[slice], member)
	}
	return members
}

// partsShareRacks: the members of each part of a gang share one of two racks of 4 cpu, a replacement goes to the rack of its part, and a part that has
// room in no rack waits, though there are enough nodes.
func (g team) partsShareRacks(p parts) {
	t := g.t
	first, apart := g.wire.name+"-parts", g.wire.name+"-apart"
	g.sweep(t)
	defer func() { g.sweep(t); g.drop(first, apart) }()

	members := g.declareParts(p, first, 3, "a", "b")
	g.placed(t, slices.Concat(members["a"], members["b"])...)
	a, b := g.racksOf(t, members["a"]...), g.racksOf(t, members["b"]...)
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("the parts are in the racks %v and %v", a, b)
	}

	gone := members["a"][2]
	g.kill(t, gone)
	again := plain(gone+"-again", g.scheduler, "1")
	g.setGroup(again, first, 6)
	p.in(again, "a")
	g.create(t, again)
	g.placed(t, again.Name)
	if racks := g.racksOf(t, again.Name); racks[0] != a[0] {
		t.Errorf("the replacement is in %v, the others of its part are in %v", racks, a)
	}

	// Each rack has room for one more, so that there is room for two, but not together.
	waiting := g.declareParts(p, apart, 2, "c")["c"]
	g.waitMessage(t, waiting[0], "all 2 members with "+p.which("c")+" must share one "+p.domain("c")+": ")
	if n := g.bound(t, waiting...); n != 0 {
		t.Errorf("%d of 2 members have nodes", n)
	}
	const more = "one-more"
	if _, stderr, err := g.Run("node", "add", more, "--cpu=2", "--gpus=0", "--label="+rackLabel+"="+a[0]); err != nil {
		t.Fatalf("node add: %v\n%s", err, stderr)
	}
	defer func() {
		g.sweep(t)
		must(t, g.client.CoreV1().Nodes().Delete(t.Context(), more, now()))
		g.knowsNodes(t, g.scheduler) // what comes next must not be bound to it
	}()
	if p.joins != nil {
		p.joins(g, more, a[0])
	}
	g.placed(t, waiting...)
	if racks := g.racksOf(t, waiting...); len(racks) != 1 {
		t.Errorf("the part that waited is in the racks %v", racks)
	}
}

// partsBelowSwitches is partsShareRacks by HyperNodes, each of which has the nodes of a rack.
func (g team) partsBelowSwitches(t *testing.T, n network, switches map[string][]string) {
	t.Helper()
	client := g.dynamic.Resource(n.resource)
	racks := map[string][]string{}
	for name, nodes := range switches {
		racks["r"+strings.TrimPrefix(name, "s")] = nodes
	}
	for _, u := range n.below(racks) {
		u.SetGroupVersionKind(n.resource.GroupVersion().WithKind(n.kind))
		_, err := client.Create(t.Context(), u, metav1.CreateOptions{})
		must(t, err)
		defer func() { must(t, client.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})) }()
	}
	g.partsShareRacks(inPolicies())
}

package dialect

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// annotated adds annotations to an object.
func annotated(u *unstructured.Unstructured, pairs ...string) *unstructured.Unstructured {
	notes := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		notes[pairs[i]] = pairs[i+1]
	}
	u.SetAnnotations(notes)
	return u
}

// nested are groups within each other, each with a constraint.
func nested(n int) (groups []any) {
	for i := range n {
		groups = append(groups, map[string]any{"name": fmt.Sprint("g", i), "parent": fmt.Sprint("g", i-1), "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}})
	}
	return groups
}

// By which labels a group object states that members share a domain, dialect by dialect. What is not read is noted.
func TestDecodeTopology(t *testing.T) {
	rack := gang.Topology{Required: "rack"}
	volcano := func(mode string, highest int64) map[string]any {
		return map[string]any{"minMember": int64(2), "networkTopology": map[string]any{"mode": mode, "highestTierAllowed": highest}}
	}
	layers := func(strategies string) *unstructured.Unstructured {
		return annotated(object("scheduling.sigs.k8s.io/v1alpha1", nil, nil), koordinator.TopologyAnnotation, `{"gatherStrategy":[`+strategies+`]}`)
	}
	tier := networktopology.TierKey
	var allTiers []string
	for n := range networktopology.MaxTier + 1 {
		allTiers = append(allTiers, tier(n))
	}
	for name, tc := range map[string]struct {
		dialect   gang.Dialect
		object    *unstructured.Unstructured
		want      gang.Topology
		from      gang.TopologySource
		unapplied string
		required  bool
	}{
		"scheduler-plugins": {gang.SchedulerPlugins, annotated(object("scheduling.x-k8s.io/v1alpha1", nil, nil), gang.TopologyRequired, "rack"), rack, gang.TopologyAnnotation, "", false},
		"kube-batch": {gang.KubeBatch, annotated(object("scheduling.sigs.dev/v1alpha2", nil, nil), gang.TopologyPreferred, "rack,zone"),
			gang.Topology{Preferred: []string{"rack", "zone"}}, gang.TopologyAnnotation, "", false},
		"native": {gang.Native, object("scheduling.k8s.io/v1beta1", map[string]any{"schedulingConstraints": map[string]any{"topology": []any{map[string]any{"key": "rack"}}}}, nil),
			rack, gang.TopologyField, "", false},
		"native, preferred within": {gang.Native, annotated(object("scheduling.k8s.io/v1beta1", map[string]any{"schedulingConstraints": map[string]any{"topology": []any{map[string]any{"key": "zone"}}}}, nil), gang.TopologyPreferred, "rack"),
			gang.Topology{Required: "zone", Preferred: []string{"rack"}}, gang.TopologyField, "", false},
		"native, parts of a part": {gang.Native, annotated(object("scheduling.k8s.io/v1beta1", map[string]any{"parentCompositePodGroupName": "tree"}, nil), gang.TopologyParts, `[{"required":"rack"}]`),
			gang.Topology{}, "", "in a CompositePodGroup", true},
		"native, annotated": {gang.Native, annotated(object("scheduling.k8s.io/v1beta1", nil, nil), gang.TopologyRequired, "rack"), rack, gang.TopologyAnnotation, "", false},
		"KAI": {gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{"topologyConstraint": map[string]any{"requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"}}, nil),
			gang.Topology{Required: "zone", Preferred: []string{"rack"}}, gang.TopologyField, "", false},
		"KAI, preferred": {gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{"topologyConstraint": map[string]any{"preferredTopologyLevel": "rack"}}, nil),
			gang.Topology{Preferred: []string{"rack"}}, gang.TopologyField, "", false},
		"KAI, of subgroups": {gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{"subGroups": []any{
			map[string]any{"name": "a", "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}}, map[string]any{"name": "b"},
			map[string]any{"name": "c", "topologyConstraint": map[string]any{"preferredTopologyLevel": "rack"}},
			map[string]any{"name": "d", "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}},
		}}, nil), gang.Topology{Parts: []gang.PartRule{
			{Selector: "kai.scheduler/subgroup-name in (a,d)", By: []string{"kai.scheduler/subgroup-name"}, Required: "rack"},
			{Selector: "kai.scheduler/subgroup-name in (c)", By: []string{"kai.scheduler/subgroup-name"}, Preferred: []string{"rack"}},
		}}, "", "", false},
		"KAI, of subgroups in a subgroup, and of all": {gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{
			"topologyConstraint": map[string]any{"requiredTopologyLevel": "zone"}, "subGroups": []any{
				map[string]any{"name": "a", "topologyConstraint": map[string]any{"requiredTopologyLevel": "block"}}, map[string]any{"name": "b", "parent": "a"},
				map[string]any{"name": "c", "parent": "b"}, map[string]any{"name": "d", "parent": "a"},
			},
		}, nil), gang.Topology{Required: "zone", Parts: []gang.PartRule{{Selector: "kai.scheduler/subgroup-name in (a,b,c,d)", Required: "block"}}}, gang.TopologyField, "", false},
		"KAI, a name that no pod can have": {gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{"subGroups": []any{
			map[string]any{"name": "w),foo notin (x", "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}}, map[string]any{"name": "b", "parent": "w),foo notin (x"},
			map[string]any{"name": "y z", "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}},
		}}, nil), gang.Topology{Parts: []gang.PartRule{{Selector: "kai.scheduler/subgroup-name in (b)", Required: "rack"}}}, "", "", false},
		"KAI, a circle": {gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{"subGroups": []any{
			map[string]any{"name": "a", "parent": "b", "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}}, map[string]any{"name": "b", "parent": "a"},
		}}, nil), gang.Topology{Parts: []gang.PartRule{{Selector: "kai.scheduler/subgroup-name in (a,b)", Required: "rack"}}}, "", "", false},
		"Volcano, hard":       {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("hard", 1), nil), gang.Topology{Required: tier(1), Preferred: []string{tier(0)}}, gang.TopologyField, "", false},
		"Volcano, by default": {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("", 3), nil), gang.Topology{Required: tier(3), Preferred: []string{tier(0), tier(1), tier(2)}}, gang.TopologyField, "", false},
		"Volcano, soft":       {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("soft", 1), nil), gang.Topology{Preferred: allTiers}, gang.TopologyField, "", false},
		"Volcano, no tier":    {gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{"networkTopology": map[string]any{"mode": "hard"}}, nil), gang.Topology{Preferred: allTiers}, gang.TopologyField, "", false},
		"Volcano, tier 0":     {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("hard", 0), nil), gang.Topology{Required: tier(0)}, gang.TopologyField, "", false},
		"Volcano, the least":  {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("hard", math.MinInt32), nil), gang.Topology{Required: tier(-1)}, gang.TopologyField, "", false},
		"Volcano, the most":   {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("hard", math.MaxInt32), nil), gang.Topology{Preferred: allTiers}, gang.TopologyField, "at most tier 2147483647", true},
		"Volcano, tier 20":    {gang.Volcano, object("scheduling.volcano.sh/v1beta1", volcano("hard", 20), nil), gang.Topology{Preferred: allTiers}, gang.TopologyField, "at most tier 20", true},
		"Volcano, by the name of a tier": {gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{"networkTopology": map[string]any{"highestTierName": "block"}}, nil),
			gang.Topology{Required: networktopology.TierNameKey("block"), Preferred: allTiers}, gang.TopologyField, "", false},
		"Volcano, of subgroups": {gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{"subGroupPolicy": []any{
			map[string]any{"name": "a", "labelSelector": map[string]any{"matchLabels": map[string]any{"role": "worker"}}, "matchLabelKeys": []any{"slice"}, "networkTopology": map[string]any{"mode": "hard", "highestTierAllowed": int64(1)}},
			map[string]any{"name": "b", "matchLabelKeys": []any{"role"}}, map[string]any{"name": "c", "networkTopology": map[string]any{"mode": "soft"}},
		}}, nil), gang.Topology{Parts: []gang.PartRule{
			{Selector: "role=worker", By: []string{"slice"}, Required: tier(1), Preferred: []string{tier(0)}}, {Preferred: allTiers},
		}}, "", "", false},
		"Volcano, of subgroups, and of all": {gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{
			"networkTopology": map[string]any{"mode": "hard", "highestTierAllowed": int64(2)},
			"subGroupPolicy":  []any{map[string]any{"name": "a", "matchLabelKeys": []any{"slice"}, "networkTopology": map[string]any{"highestTierAllowed": int64(0)}}},
		}, nil), gang.Topology{Required: tier(2), Preferred: []string{tier(0), tier(1)}, Parts: []gang.PartRule{{By: []string{"slice"}, Required: tier(0)}}}, gang.TopologyField, "", false},
		"Volcano, annotated":            {gang.Volcano, annotated(object("scheduling.volcano.sh/v1beta1", nil, nil), gang.TopologyRequired, "rack"), rack, gang.TopologyAnnotation, "", false},
		"Koordinator, must":             {gang.Koordinator, layers(`{"layer":"BlockLayer","strategy":"MustGather"}`), gang.Topology{Required: networktopology.LayerKey("BlockLayer")}, gang.TopologyField, "", false},
		"Koordinator, preferred":        {gang.Koordinator, layers(`{"layer":"BlockLayer","strategy":"PreferGather"},{"layer":"SpineLayer","strategy":"PreferGather"}`), gang.Topology{Preferred: []string{networktopology.LayerKey("BlockLayer"), networktopology.LayerKey("SpineLayer")}}, gang.TopologyField, "", false},
		"Koordinator, preferred within": {gang.Koordinator, layers(`{"layer":"BlockLayer","strategy":"PreferGather"},{"layer":"SpineLayer","strategy":"MustGather"}`), gang.Topology{Required: networktopology.LayerKey("SpineLayer"), Preferred: []string{networktopology.LayerKey("BlockLayer")}}, gang.TopologyField, "", false},
		"Koordinator, two that must":    {gang.Koordinator, layers(`{"layer":"BlockLayer","strategy":"MustGather"},{"layer":"SpineLayer","strategy":"MustGather"}`), gang.Topology{Required: networktopology.LayerKey("BlockLayer"), Parts: []gang.PartRule{{Required: networktopology.LayerKey("SpineLayer")}}}, gang.TopologyField, "", false},
		"Koordinator, a multiple":       {gang.Koordinator, layers(`{"layer":"BlockLayer","strategy":"PreferGather","podCountMultiple":2}`), gang.Topology{Preferred: []string{networktopology.LayerKey("BlockLayer")}}, gang.TopologyField, "podCountMultiple", true},
		"Koordinator, one node":         {gang.Koordinator, layers(`{"layer":"NodeTopologyLayer","strategy":"MustGather"},{"layer":"ClusterTopologyLayer","strategy":"PreferGather"}`), gang.Topology{Required: "kubernetes.io/hostname"}, gang.TopologyField, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := reader(t, tc.dialect).Decode(tc.object)
			if err != nil || !reflect.DeepEqual(d.Topology, tc.want) || d.TopologyFrom != tc.from {
				t.Errorf("got %+v from %q, %v", d.Topology, d.TopologyFrom, err)
			}
			if len(d.Unapplied) != min(1, len(tc.unapplied)) || len(d.Unapplied) > 0 && (!strings.Contains(d.Unapplied[0].Text, tc.unapplied) || d.Unapplied[0].Required != tc.required) {
				t.Errorf("unapplied: %+v", d.Unapplied)
			}
		})
	}
	if _, err := reader(t, gang.KAI).Decode(object("scheduling.run.ai/v2alpha2", map[string]any{"topologyConstraint": map[string]any{"requiredTopologyLevel": "r r"}}, nil)); err == nil {
		t.Error("a level that is no label was accepted")
	}
	if _, err := reader(t, gang.Native).Decode(object("scheduling.k8s.io/v1beta1", map[string]any{"schedulingConstraints": map[string]any{"topology": []any{map[string]any{"key": "r r"}}}}, nil)); err == nil {
		t.Error("a key that is no label was accepted")
	}
	if d, err := reader(t, gang.KAI).Decode(object("scheduling.run.ai/v2alpha2", map[string]any{"subGroups": nested(20)}, nil)); err == nil || !strings.Contains(err.Error(), "subGroups") {
		t.Errorf("20 groups within each other were accepted: %+v", d.Topology)
	}
	for _, policy := range []map[string]any{
		{"labelSelector": "role=worker", "networkTopology": map[string]any{"mode": "hard"}},
		{"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "role", "operator": "Like"}}}, "networkTopology": map[string]any{"mode": "hard"}},
		{"matchLabelKeys": []any{"r r"}, "networkTopology": map[string]any{"mode": "hard"}},
		{"matchLabelKeys": "slice", "networkTopology": map[string]any{"mode": "hard"}},
		{"networkTopology": map[string]any{"highestTierAllowed": "one"}},
	} {
		if d, err := reader(t, gang.Volcano).Decode(object("scheduling.volcano.sh/v1beta1", map[string]any{"subGroupPolicy": []any{policy}}, nil)); err == nil {
			t.Errorf("%v was accepted: %+v", policy, d.Topology)
		}
	}
	for _, text := range []string{`{`, `{"gatherStrategy":[{"layer":"r r","strategy":"MustGather"}]}`} {
		if _, err := reader(t, gang.Koordinator).Decode(annotated(object("scheduling.sigs.k8s.io/v1alpha1", nil, nil), koordinator.TopologyAnnotation, text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	// A rule that is not understood must not be ignored: the object cannot be read.
	for _, d := range []gang.Dialect{gang.SchedulerPlugins, gang.Native, gang.KAI} {
		if _, err := reader(t, d).Decode(annotated(object("x/v1", nil, nil), gang.TopologyPreferred, "r r")); err == nil || !strings.Contains(err.Error(), gang.TopologyPreferred) {
			t.Errorf("%s: got %v", d, err)
		}
	}
}

// What is read of Koordinator's annotation is written again with all layers, and without rules that are in another annotation.
func TestGatherStrategy(t *testing.T) {
	text := `{"gatherStrategy":[{"layer":"RackLayer","strategy":"PreferGather"},{"layer":"BlockLayer","strategy":"MustGather"},{"layer":"SpineLayer","strategy":"MustGather"}]}`
	group := annotated(object("scheduling.sigs.k8s.io/v1alpha1", nil, nil), koordinator.TopologyAnnotation, text)
	d, err := reader(t, gang.Koordinator).Decode(group)
	if err != nil {
		t.Fatal(err)
	}
	d.Topology.Parts = append(d.Topology.Parts, gang.PartRule{By: []string{"slice"}, Required: "rack"})
	if got := koordinator.GatherStrategy(d.Topology); got != text {
		t.Errorf("got %s, want %s", got, text)
	}
}

func TestBudgetTopology(t *testing.T) {
	yes := true
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "g", OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: &yes}}, Annotations: map[string]string{gang.TopologyRequired: "rack"}}}
	if d, ok := pdb.Declare(budget); !ok || d.Topology.Required != "rack" || len(d.Unapplied) > 0 {
		t.Errorf("got %+v", d)
	}
	budget.Annotations[gang.TopologyRequired] = "r r"
	if d, ok := pdb.Declare(budget); !ok || !d.Topology.Empty() || len(d.Unapplied) != 1 || !d.Unapplied[0].Required {
		t.Errorf("got %+v", d)
	}
}

func TestKueueTopology(t *testing.T) {
	for name, tc := range map[string]struct {
		notes []string
		want  gang.Topology
		bad   bool
	}{
		"none":          {nil, gang.Topology{}, false},
		"required":      {[]string{"kueue.x-k8s.io/podset-required-topology", "rack"}, gang.Topology{Required: "rack"}, false},
		"preferred":     {[]string{"kueue.x-k8s.io/podset-preferred-topology", "rack"}, gang.Topology{Preferred: []string{"rack"}}, false},
		"unconstrained": {[]string{"kueue.x-k8s.io/podset-unconstrained-topology", "true"}, gang.Topology{}, false},
		"unreadable":    {[]string{"kueue.x-k8s.io/podset-required-topology", "r r"}, gang.Topology{}, true},
	} {
		if got, err := kueue.TopologyOf(noted(tc.notes...)); (err != nil) != tc.bad || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
)

// network are the objects by which one dialect describes that every two of four nodes are below one switch, and the rule that all members are.
type network struct {
	dialect  string
	resource schema.GroupVersionResource
	kind     string
	// below are the objects with these nodes below each switch.
	below func(switches map[string][]string) []*unstructured.Unstructured
	// rule adds to a PodGroup that its members must be below one switch.
	rule func(group *unstructured.Unstructured)
	// preference adds that they had better be.
	preference func(group *unstructured.Unstructured)
	// title is what the scheduler calls what members must share.
	title string
}

func hyperNodes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "topology.volcano.sh", Version: "v1alpha1", Resource: "hypernodes"}
}

func networks() []network {
	layers := schema.GroupVersionResource{Group: "scheduling.koordinator.sh", Version: "v1alpha1", Resource: "clusternetworktopologies"}
	return []network{
		{
			dialect: "volcano", resource: hyperNodes(), kind: "HyperNode", title: "HyperNode of tier 1 or lower",
			below: func(switches map[string][]string) (all []*unstructured.Unstructured) {
				for _, name := range slices.Sorted(maps.Keys(switches)) { // of two that have a node the first by name counts
					var members []any
					for _, node := range switches[name] {
						members = append(members, map[string]any{"type": "Node", "selector": map[string]any{"exactMatch": map[string]any{"name": node}}})
					}
					u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"tier": int64(1), "members": members}}}
					u.SetName(name)
					all = append(all, u)
				}
				return all
			},
			rule: func(group *unstructured.Unstructured) {
				spec, _ := group.Object["spec"].(map[string]any)
				spec["networkTopology"] = map[string]any{"mode": "hard", "highestTierAllowed": int64(1)}
			},
			preference: func(group *unstructured.Unstructured) {
				spec, _ := group.Object["spec"].(map[string]any)
				spec["networkTopology"] = map[string]any{"mode": "soft"}
			},
		},
		{
			dialect: "koordinator", resource: layers, kind: "ClusterNetworkTopology", title: "domain of layer SwitchLayer",
			below: func(map[string][]string) []*unstructured.Unstructured {
				u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"networkTopologySpec": []any{
					map[string]any{"topologyLayer": "SwitchLayer", "labelKey": []any{rackLabel}}, map[string]any{"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "SwitchLayer"},
				}}}}
				u.SetName("default")
				return []*unstructured.Unstructured{u}
			},
			rule: func(group *unstructured.Unstructured) {
				group.SetAnnotations(map[string]string{koordinator.TopologyAnnotation: `{"gatherStrategy":[{"layer":"SwitchLayer","strategy":"MustGather"}]}`})
			},
			preference: func(group *unstructured.Unstructured) {
				group.SetAnnotations(map[string]string{koordinator.TopologyAnnotation: `{"gatherStrategy":[{"layer":"SwitchLayer","strategy":"PreferGather"}]}`})
			},
		},
	}
}

// TestNetworkTopology places gangs below one switch of a network that objects of their dialect describe.
func TestNetworkTopology(t *testing.T) {
	t.Parallel()
	// A cluster of its own: the nodes are below switches.
	c := newCluster(t, "--nodes=4", "--cpu=2", "--gpus=0", "--run-for=0", "--operator=false", served)
	c.racks(t)
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	switches := map[string][]string{}
	for i, n := range nodes.Items {
		name := fmt.Sprintf("s%d", i/2+1)
		switches[name] = append(switches[name], n.Name)
	}
	for _, n := range networks() {
		t.Run(n.dialect, func(t *testing.T) {
			at := slices.IndexFunc(wires(), func(w wire) bool { return w.name == n.dialect })
			g := c.with(t, wires()[at])
			g.defined()
			c.defineKind(t, n.resource, n.kind, "Cluster")
			n.placesBelowOneSwitch(g, switches)
			if n.dialect == "volcano" {
				g.partsBelowSwitches(t, n, switches)
			}
		})
	}
}

// declare creates a PodGroup with the rule.
func (n network) declare(g team, name string, count int) {
	g.t.Helper()
	g.declareGroup(name, count, n.rule)
	g.members(name, count, count)
}

func (n network) placesBelowOneSwitch(g team, switches map[string][]string) {
	t := g.t
	client := g.dynamic.Resource(n.resource)
	first, second, large := n.dialect+"-first", n.dialect+"-second", n.dialect+"-large"
	small, spread := n.dialect+"-small", n.dialect+"-spread"
	defer func() {
		g.sweep(t)
		for _, name := range []string{first, second, large, small, spread} {
			must(t, g.dynamic.Resource(g.resource).Namespace(space).Delete(context.Background(), name, metav1.DeleteOptions{}))
		}
	}()

	// Without an object there is no domain, and a rule must not be ignored.
	n.declare(g, first, 3)
	g.waitMessage(t, first+"-0", "all 3 members must share one "+n.title+": no node has it")
	var made []*unstructured.Unstructured
	for _, u := range n.below(switches) {
		u.SetGroupVersionKind(n.resource.GroupVersion().WithKind(n.kind))
		eventually(t, u.GetName()+" is created", func(ctx context.Context) bool {
			_, err := client.Create(ctx, u, metav1.CreateOptions{})
			return err == nil
		})
		made = append(made, u)
	}
	// The first gang leaves one cpu below its switch, so that the second, of four, goes to the other.
	g.placed(t, g.names(first, 3)...)
	n.declare(g, second, 4)
	g.placed(t, g.names(second, 4)...)
	a, b := g.racksOf(t, g.names(first, 3)...), g.racksOf(t, g.names(second, 4)...)
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("the gangs are in the racks %v and %v", a, b)
	}

	// Where one switch is a preference, three share one although the nodes of two are equally free, and six start on all nodes.
	g.sweep(t)
	g.declareGroup(small, 3, n.preference)
	g.members(small, 3, 3)
	g.placed(t, g.names(small, 3)...)
	if racks := g.racksOf(t, g.names(small, 3)...); len(racks) != 1 {
		t.Errorf("three that had better share a switch are in the racks %v", racks)
	}
	g.sweep(t)
	g.declareGroup(spread, 6, n.preference)
	g.members(spread, 6, 6)
	g.placed(t, g.names(spread, 6)...)

	// Six would fit on all nodes, and below no switch, until one switch has all of them.
	g.sweep(t)
	n.declare(g, large, 6)
	g.waitMessage(t, large+"-0", "all 6 members must share one "+n.title+": ")
	if bound := g.bound(t, g.names(large, 6)...); bound != 0 {
		t.Errorf("%d of 6 members have nodes", bound)
	}
	g.oneSwitch(t, n, made[0])
	g.placed(t, g.names(large, 6)...)
	for _, u := range made {
		must(t, client.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	}
}

// oneSwitch has one object put all nodes below one switch.
func (g team) oneSwitch(t *testing.T, n network, u *unstructured.Unstructured) {
	t.Helper()
	patch := `{"spec":{"members":[{"type":"Node","selector":{"regexMatch":{"pattern":"."}}}]}}`
	if n.dialect == "koordinator" {
		patch = fmt.Sprintf(`{"spec":{"networkTopologySpec":[{"topologyLayer":"SwitchLayer","labelKey":[%q]}]}}`, corev1.LabelOSStable)
	}
	_, err := g.dynamic.Resource(n.resource).Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

package networktopology

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects are those of a file, of which each document is a spec, a line with its kind and name before it.
func objects(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for doc := range strings.SplitSeq(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

func hyper(name string, tier int, members string) string {
	return fmt.Sprintf("{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: %s}, spec: {tier: %d, members: [%s]}}\n", name, tier, members)
}

func exact(kind string, names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("{type: %s, selector: {exactMatch: {name: %s}}}", kind, name))
	}
	return strings.Join(all, ", ")
}

func node(name string, pairs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		n.Labels[pairs[i]] = pairs[i+1]
	}
	return n
}

// tiers are the labels of a node by HyperNodes, by tier.
func tiers(n *corev1.Node) string {
	var all []string
	for tier := 1; tier <= MaxTier; tier++ {
		all = append(all, n.Labels[TierKey(tier)])
	}
	return strings.TrimRight(strings.Join(all, " "), " ")
}

func TestHyperNodes(t *testing.T) {
	tree := hyper("s0", 1, exact("Node", "n0", "n1")) + "---\n" + hyper("s1", 1, "{type: Node, selector: {regexMatch: {pattern: '^n[23]$'}}}") + "---\n" +
		hyper("s2", 1, "{type: Node, selector: {labelMatch: {matchLabels: {rack: r2}}}}") + "---\n" + hyper("b0", 3, exact("HyperNode", "s0", "s1")) + "---\n" +
		hyper("top", 4, exact("HyperNode", "b0", "s2"))
	d := New(objects(t, tree))
	if len(d.Problems()) > 0 {
		t.Fatal(d.Problems())
	}
	for name, tt := range map[string]struct {
		node *corev1.Node
		want string
	}{
		"by name":          {node("n0"), "s0 s0 b0 top top top top"},
		"by a pattern":     {node("n3"), "s1 s1 b0 top top top top"},
		"by a label":       {node("n7", "rack", "r2"), "s2 s2 s2 top top top top"},
		"in none":          {node("n8"), ""},
		"almost a pattern": {node("n23"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tt.node.Labels)
			got := d.Label(tt.node)
			if tiers(got) != tt.want {
				t.Errorf("tiers %q, want %q", tiers(got), tt.want)
			}
			if !maps.Equal(tt.node.Labels, before) {
				t.Error("the node itself was changed")
			}
			if d.Label(got) != got {
				t.Error("a node that is labelled is copied again")
			}
			if again := New(nil).Label(got); tiers(again) != "" || again.Labels["rack"] != before["rack"] {
				t.Errorf("without HyperNodes it keeps %v", again.Labels)
			}
		})
	}
	if got := tiers(New(objects(t, hyper("none", 1, "{type: Node, selector: {labelMatch: {}}}"))).Label(node("n0"))); got != "" {
		t.Errorf("an empty selector selects the node: %q", got)
	}
	zero := New(objects(t, hyper("leaf", 0, exact("Node", "n0")))).Label(node("n0"))
	if zero.Labels[TierKey(0)] != "leaf" || zero.Labels[TierKey(MaxTier)] != "leaf" {
		t.Errorf("labels of tier 0: %v", zero.Labels)
	}
	if n := node("n9"); d.Label(n) != n {
		t.Error("a node in no HyperNode is copied")
	}
}

func TestHyperNodesInCircles(t *testing.T) {
	d := New(objects(t, hyper("a", 1, exact("Node", "n0")+", "+exact("HyperNode", "b"))+"---\n"+hyper("b", 2, exact("HyperNode", "a", "b"))))
	if got := tiers(d.Label(node("n0"))); got != "a b b b b b b" {
		t.Errorf("tiers %q", got)
	}
}

func TestTierNames(t *testing.T) {
	text := strings.ReplaceAll(hyper("s0", 1, exact("Node", "n0")), "tier: 1", "tier: 1, tierName: rack") + "---\n" +
		strings.ReplaceAll(hyper("b0", 2, exact("HyperNode", "s0")), "tier: 2", "tier: 2, tierName: block")
	n := New(objects(t, text)).Label(node("n0"))
	if n.Labels[TierNameKey("rack")] != "s0" || n.Labels[TierNameKey("block")] != "b0" {
		t.Errorf("labels %v", n.Labels)
	}
}

func TestLayers(t *testing.T) {
	d := New(objects(t, `{apiVersion: scheduling.koordinator.sh/v1alpha1, kind: ClusterNetworkTopology, metadata: {name: default}, spec: {networkTopologySpec: [
  {topologyLayer: SpineLayer, labelKey: [example.com/spine]},
  {topologyLayer: BlockLayer, parentTopologyLayer: SpineLayer, labelKey: [example.com/block, example.com/old-block]},
  {topologyLayer: NodeTopologyLayer, parentTopologyLayer: BlockLayer}]}}`))
	for _, tt := range []struct {
		node *corev1.Node
		want map[string]string
	}{
		{node("n0", "example.com/spine", "s1", "example.com/block", "b1"), map[string]string{LayerKey("SpineLayer"): "s1", LayerKey("BlockLayer"): "b1"}},
		{node("n1", "example.com/old-block", "b2"), map[string]string{LayerKey("BlockLayer"): "b2"}},
		{node("n2", "example.com/rack", "r1"), nil},
		{node("n3", "example.com/block", "", "example.com/old-block", "b2"), map[string]string{LayerKey("BlockLayer"): "b2"}},
	} {
		got := maps.Clone(d.Label(tt.node).Labels)
		for key := range tt.node.Labels {
			delete(got, key)
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: labels %v, want %v", tt.node.Name, got, tt.want)
		}
	}
}

// What cannot be read is left out, and reported; the rest counts.
func TestUnreadableHyperNodes(t *testing.T) {
	good := hyper("good", 1, exact("Node", "n0"))
	for name, bad := range map[string]string{
		"pattern":    hyper("bad", 1, "{type: Node, selector: {regexMatch: {pattern: '('}}}"),
		"tier":       hyper("bad", -1, exact("Node", "n0")),
		"high tier":  hyper("bad", 8, exact("Node", "n0")),
		"HyperNodes": hyper("bad", 1, "{type: HyperNode, selector: {labelMatch: {matchExpressions: [{key: a, operator: DoesNotExist}]}}}"),
		"selector":   hyper("bad", 1, "{type: Node, selector: {}}"),
		"type":       hyper("bad", 1, exact("Rack", "n0")),
		"labels":     hyper("bad", 1, "{type: Node, selector: {labelMatch: {matchExpressions: [{key: a, operator: Like}]}}}"),
		"no members": "{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: bad}, spec: {tier: 1, members: 7}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			d := New(objects(t, bad+"---\n"+good))
			if len(d.Problems()) != 1 || !strings.Contains(d.Problems()[0].Error(), "bad") {
				t.Errorf("problems: %v", d.Problems())
			}
			if got := tiers(d.Label(node("n0"))); !strings.HasPrefix(got, "good good") {
				t.Errorf("tiers %q", got)
			}
		})
	}
}

// Of the layers only those of the name default count, and of the names of tiers the first few.
func TestOneNetwork(t *testing.T) {
	other := "{apiVersion: scheduling.koordinator.sh/v1alpha1, kind: ClusterNetworkTopology, metadata: {name: old}, spec: {networkTopologySpec: [{topologyLayer: BlockLayer, labelKey: [rack]}]}}"
	if n := node("n0", "rack", "r1"); New(objects(t, other)).Label(n) != n {
		t.Error("layers of another name count")
	}
	var all []string
	for i := range 20 {
		all = append(all, strings.ReplaceAll(hyper(fmt.Sprint("s", i), 1, exact("Node", "n0")), "tier: 1", fmt.Sprintf("tier: 1, tierName: name-%02d", i)))
	}
	d := New(objects(t, strings.Join(all, "---\n")))
	if got := d.Label(node("n0")).Labels; got[TierNameKey("name-07")] == "" || got[TierNameKey("name-08")] != "" || len(d.Problems()) != 12 {
		t.Errorf("labels %v, problems %v", got, d.Problems())
	}
}

// Before nodes change places, those that do are in none: none is in an old domain next to one in a new domain of the same name.
func TestBetween(t *testing.T) {
	before := New(objects(t, hyper("s1", 1, exact("Node", "n1", "n2"))+"---\n"+hyper("s2", 1, exact("Node", "n3"))))
	after := New(objects(t, hyper("s2", 1, exact("Node", "n1", "n4"))+"---\n"+hyper("s1", 1, exact("Node", "n2"))))
	for name, want := range map[string]string{"n1": "", "n2": "s1 s1 s1 s1 s1 s1 s1", "n3": "", "n4": ""} {
		shown := before.Label(node(name))
		got := Between(shown, after.Label(shown))
		if tiers(got) != want || want != "" && got != shown {
			t.Errorf("%s: in between %q, want %q", name, tiers(got), want)
		}
	}
}

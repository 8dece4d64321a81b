package networktopology

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Domains are the domains that the objects of a cluster describe. It is not changed once it is made; the zero value has none.
type Domains struct {
	byNode   map[string][]*hyperNode     // by the name of a node that they name
	byRule   []*hyperNode                // those that select nodes otherwise
	around   map[*hyperNode][]*hyperNode // a HyperNode and all that it is in
	tierOf   map[string]int32            // by tierName: the highest tier of that name
	layers   []layer
	problems []error
}

// Problems are those of objects that cannot be read, and are left out.
func (d *Domains) Problems() []error { return d.problems }

// New reads the objects of [Kinds]; others are passed over.
func New(objects []*unstructured.Unstructured) *Domains {
	d := &Domains{byNode: map[string][]*hyperNode{}, around: map[*hyperNode][]*hyperNode{}, tierOf: map[string]int32{}}
	var all []*hyperNode
	for _, u := range slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) }) {
		switch u.GroupVersionKind().GroupKind() {
		case hyperNodes.GroupKind:
			h, err := decodeHyperNode(u)
			if err != nil {
				d.problems = append(d.problems, err)
				continue
			}
			all = append(all, h)
		case layers.GroupKind:
			list, err := decodeLayers(u)
			if err != nil {
				d.problems = append(d.problems, err)
			}
			d.layers = append(d.layers, list...)
		}
	}
	for _, h := range all {
		d.add(h)
	}
	parents := parentsOf(all)
	for _, h := range all {
		d.around[h] = ancestors(h, parents)
	}
	return d
}

func (d *Domains) add(h *hyperNode) {
	if h.tierName != "" {
		d.tierOf[h.tierName] = max(d.tierOf[h.tierName], h.tier)
	}
	rules := false
	for _, s := range h.nodes {
		if s.pattern != nil || s.labels != nil {
			rules = true
			continue
		}
		d.byNode[s.name] = append(d.byNode[s.name], h)
	}
	if rules {
		d.byRule = append(d.byRule, h)
	}
}

// parentsOf are the HyperNodes that have another one as a member.
func parentsOf(all []*hyperNode) map[*hyperNode][]*hyperNode {
	byName := map[string]*hyperNode{}
	for _, h := range all {
		byName[h.name] = h
	}
	parents := map[*hyperNode][]*hyperNode{}
	for _, parent := range all {
		for _, s := range parent.children {
			if s.pattern == nil && s.labels == nil {
				if child := byName[s.name]; child != nil {
					parents[child] = append(parents[child], parent)
				}
				continue
			}
			for _, child := range all {
				if s.selects(child.name, nil) {
					parents[child] = append(parents[child], parent)
				}
			}
		}
	}
	return parents
}

// ancestors are a HyperNode and all that it is in, each once, whatever goes in circles.
func ancestors(h *hyperNode, parents map[*hyperNode][]*hyperNode) []*hyperNode {
	found := []*hyperNode{h}
	seen := map[*hyperNode]bool{h: true}
	for i := 0; i < len(found); i++ {
		for _, p := range parents[found[i]] {
			if !seen[p] {
				seen[p] = true
				found = append(found, p)
			}
		}
	}
	return found
}

// Label returns a node with a label for each domain that it is in: the same pointer where nothing is to be added or removed.
func (d *Domains) Label(n *corev1.Node) *corev1.Node {
	domains := d.of(n)
	had := 0
	same := true
	for key, value := range n.Labels {
		if derived(key) {
			had++
			same = same && domains[key] == value
		}
	}
	if same && had == len(domains) {
		return n
	}
	labelled := *n
	labelled.Labels = maps.Clone(n.Labels)
	maps.DeleteFunc(labelled.Labels, func(key, _ string) bool { return derived(key) })
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	maps.Copy(labelled.Labels, domains)
	return &labelled
}

// of are the labels of a node.
func (d *Domains) of(n *corev1.Node) map[string]string {
	if len(d.around)+len(d.layers) == 0 {
		return nil
	}
	all := map[string]string{}
	for _, l := range d.layers {
		for _, key := range l.labels {
			if value, ok := n.Labels[key]; ok {
				all[LayerKey(l.name)] = value
				break
			}
		}
	}
	highest := d.highest(n)
	for tier, h := range highest {
		if h != nil {
			all[TierKey(int32(tier))] = h.name //nolint:gosec // at most MaxTier
		}
	}
	for name, tier := range d.tierOf {
		if h := highest[tier]; h != nil {
			all[TierNameKey(name)] = h.name
		}
	}
	return all
}

// highest is, by tier, the HyperNode of the highest tier up to that which has the node; of several the first by name.
func (d *Domains) highest(n *corev1.Node) (highest [MaxTier + 1]*hyperNode) {
	take := func(direct *hyperNode) {
		for _, h := range d.around[direct] {
			if at := highest[h.tier]; at == nil || h.name < at.name {
				highest[h.tier] = h
			}
		}
	}
	for _, h := range d.byNode[n.Name] {
		take(h)
	}
	for _, h := range d.byRule {
		if slices.ContainsFunc(h.nodes, func(s selector) bool {
			return (s.pattern != nil || s.labels != nil) && s.selects(n.Name, labels.Set(n.Labels))
		}) {
			take(h)
		}
	}
	for tier := 1; tier <= MaxTier; tier++ {
		if highest[tier] == nil {
			highest[tier] = highest[tier-1]
		}
	}
	return highest
}

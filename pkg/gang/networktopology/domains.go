package networktopology

import (
	"cmp"
	"fmt"
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
	tierOf   map[string]int              // by tierName: the highest tier of that name
	layers   []layer
	problems []error
}

// Problems are those of objects that cannot be read, and are left out.
func (d *Domains) Problems() []error { return d.problems }

// Missing are the nodes that a HyperNode names as its members and that do not exist.
type Missing struct {
	HyperNode string
	Nodes     []string
}

// Missing finds them, by HyperNode, given which nodes exist.
func (d *Domains) Missing(exists func(node string) bool) (all []Missing) {
	of := map[string][]string{}
	for node, owners := range d.byNode {
		for _, h := range owners {
			if !exists(node) {
				of[h.name] = append(of[h.name], node)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[name])
		all = append(all, Missing{name, slices.Compact(of[name])})
	}
	return all
}

// New reads the objects of [Kinds]; others are passed over.
func New(objects []*unstructured.Unstructured) *Domains {
	d := &Domains{byNode: map[string][]*hyperNode{}, around: map[*hyperNode][]*hyperNode{}, tierOf: map[string]int{}}
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
			if u.GetName() != theLayers {
				continue // as for Koordinator
			}
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
	d.fewNames()
	parents := parentsOf(all)
	for _, h := range all {
		d.around[h] = ancestors(h, parents)
	}
	return d
}

func (d *Domains) add(h *hyperNode) {
	if h.tierName != "" && len(h.tierName) <= MaxTierName {
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

// fewNames forgets names of tiers above the number that is read.
func (d *Domains) fewNames() {
	names := slices.Sorted(maps.Keys(d.tierOf))
	for _, name := range names[min(len(names), maxTierNames):] {
		delete(d.tierOf, name)
		d.problems = append(d.problems, fmt.Errorf("tier name %.80q: no more than %d names of tiers are read", name, maxTierNames))
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
		for _, name := range parent.children {
			if child := byName[name]; child != nil {
				parents[child] = append(parents[child], parent)
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
	own := withoutDerived(n.Labels)
	domains := d.of(n.Name, own)
	if len(own)+len(domains) == len(n.Labels) && maps.Equal(domains, derivedOf(n.Labels)) {
		return n
	}
	return relabelled(n, own, domains)
}

// Between returns a node as it was, without the derived labels that have another value now or are gone; it is one of the two where these are alike. Nodes may be
// shown like this before any is shown as it is now, so that none with an old value stands next to one with a new one.
func Between(before, now *corev1.Node) *corev1.Node {
	kept := derivedOf(before.Labels)
	count := len(kept)
	maps.DeleteFunc(kept, func(key, value string) bool { return now.Labels[key] != value })
	switch len(kept) {
	case count:
		return before
	case len(derivedOf(now.Labels)):
		return now
	}
	return relabelled(before, withoutDerived(before.Labels), kept)
}

// Own is a node with the labels that it has by itself, which are those that its kubelet knows: the same pointer where it has no others.
func Own(n *corev1.Node) *corev1.Node {
	own := withoutDerived(n.Labels)
	if len(own) == len(n.Labels) {
		return n
	}
	return relabelled(n, own, nil)
}

// Selected returns a derived label by which a pod requires its node: no node has it for the kubelet, which would refuse the pod.
func Selected(pod *corev1.Pod) (key string, ok bool) {
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		if Derived(key) {
			return key, true
		}
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "", false
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if Derived(e.Key) {
				return e.Key, true
			}
		}
	}
	return "", false
}

func relabelled(n *corev1.Node, own, domains map[string]string) *corev1.Node {
	labelled := *n
	labelled.Labels = make(map[string]string, len(own)+len(domains))
	maps.Copy(labelled.Labels, own)
	maps.Copy(labelled.Labels, domains)
	return &labelled
}

// withoutDerived are the labels that a node has by itself.
func withoutDerived(all map[string]string) map[string]string {
	for key := range all {
		if Derived(key) {
			own := maps.Clone(all)
			maps.DeleteFunc(own, func(key, _ string) bool { return Derived(key) })
			return own
		}
	}
	return all
}

func derivedOf(all map[string]string) map[string]string {
	derived := map[string]string{}
	for key, value := range all {
		if Derived(key) {
			derived[key] = value
		}
	}
	return derived
}

// of are the labels of a node for the domains that it is in.
func (d *Domains) of(name string, own map[string]string) map[string]string {
	if len(d.around)+len(d.layers) == 0 {
		return nil
	}
	all := map[string]string{}
	for _, l := range d.layers {
		for _, key := range l.labels {
			if value := own[key]; value != "" {
				all[LayerKey(l.name)] = value
				break
			}
		}
	}
	highest := d.highest(name, own)
	for tier, h := range highest {
		if h != nil {
			all[TierKey(tier)] = h.name
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
func (d *Domains) highest(name string, own map[string]string) (highest [MaxTier + 1]*hyperNode) {
	take := func(direct *hyperNode) {
		for _, h := range d.around[direct] {
			if at := highest[h.tier]; at == nil || h.name < at.name {
				highest[h.tier] = h
			}
		}
	}
	for _, h := range d.byNode[name] {
		take(h)
	}
	for _, h := range d.byRule {
		if slices.ContainsFunc(h.nodes, func(s selector) bool { return s.selects(name, labels.Set(own)) }) {
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

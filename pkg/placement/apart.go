package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// KeepsApart reports whether a pod keeps others off its domains, and itself off theirs, by required anti-affinity.
func KeepsApart(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// KeepsOwnApart reports whether a pod keeps pods like itself off its domains by required anti-affinity, so that each has one of its own.
func KeepsOwnApart(p *corev1.Pod) bool {
	return KeepsApart(p) && slices.ContainsFunc(podInfo(p).RequiredAntiAffinityTerms, func(term fwk.AffinityTerm) bool { return term.Matches(p, nil) })
}

// Apart is that members of a gang keep each other off the domains of a node label by required anti-affinity, so that each needs one of its own.
type Apart struct {
	// Key is the label.
	Key string
	// Roles are those whose members keep apart, and Members is how many of them the gang needs that have no node.
	Roles   []Role
	Members int32
	// Domains are the values that nodes have which take one of them, ordered, and All is how many values nodes have which a member may use.
	Domains []string
	All     int
	// Unlabelled reports that a node without the label takes one: the rule does not count there.
	Unlabelled bool
}

// Short reports whether there are too few domains.
func (a Apart) Short() bool { return !a.Unlabelled && int(a.Members) > len(a.Domains) }

// Apart finds how members of a role keep each other and those of other roles apart, given the nodes that they may use. Of several labels it is the one with the
// fewest domains; ok is false if they do not keep apart.
func (c *Cluster) Apart(g Gang, role Role, usable []string) (a Apart, ok bool) {
	if !KeepsOwnApart(role.Pod) {
		return Apart{}, false
	}
	var open []string
	for _, s := range Slots(c, role.Pod, 1, Options{Ignore: role.Ignore}) {
		open = append(open, s.Node)
	}
	for _, term := range podInfo(role.Pod).RequiredAntiAffinityTerms {
		if !term.Matches(role.Pod, c.namespaceLabels(role.Pod.Namespace)) {
			continue
		}
		one := Apart{Key: term.TopologyKey}
		one.count(c, g, term)
		one.Domains, one.Unlabelled = c.valuesOf(open, term.TopologyKey)
		all, _ := c.valuesOf(usable, term.TopologyKey)
		one.All = len(all)
		if !ok || len(one.Domains) < len(a.Domains) {
			a, ok = one, true
		}
	}
	return a, ok
}

// count counts the members of a gang that a term keeps off each other.
func (a *Apart) count(c *Cluster, g Gang, term fwk.AffinityTerm) {
	var least, others int32
	for _, r := range g.Roles {
		switch {
		case r.Count <= 0:
		case term.Matches(r.Pod, c.namespaceLabels(r.Pod.Namespace)):
			a.Roles, a.Members = append(a.Roles, r), a.Members+r.Count
			least += min(r.Min, r.Count)
		default:
			others += r.Count
		}
	}
	a.Members = min(a.Members, max(least, g.required()-others)) // no more count than the gang needs if it has all of the others
}

// valuesOf are the values that some nodes have of a label, ordered, and whether one has none.
func (c *Cluster) valuesOf(nodes []string, key string) (values []string, unlabelled bool) {
	seen := map[string]bool{}
	for _, name := range nodes {
		value, labelled := c.Node(name).Labels[key]
		seen[value] = seen[value] || labelled
		unlabelled = unlabelled || !labelled
	}
	maps.DeleteFunc(seen, func(_ string, labelled bool) bool { return !labelled })
	return slices.Sorted(maps.Keys(seen)), unlabelled
}

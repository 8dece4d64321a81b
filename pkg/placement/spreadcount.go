package placement

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SpreadCount is what a topology spread constraint counts on a cluster, as it is before any member of the gang is placed.
type SpreadCount struct {
	Constraint corev1.TopologySpreadConstraint
	// Domains are those that count, ordered by their value.
	Domains []SpreadDomain
	// Least is the count from which the skew is measured: that of the domain with the fewest pods, and 0 where there are fewer domains than minDomains.
	Least int

	self     bool
	selected func(*corev1.Pod) bool
	domain   map[string]int // by node, its position in Domains
}

// SpreadDomain is a domain, and how many of the pods that count are in it.
type SpreadDomain struct {
	Value string
	Pods  int
}

// Full reports whether a domain takes no pod as long as others have so few.
func (s SpreadCount) Full(d SpreadDomain) bool {
	own := 0
	if s.self {
		own = 1
	}
	return d.Pods+own-s.Least > int(s.Constraint.MaxSkew)
}

// In returns the domain in which a pod counts; ok is false for one that does not.
func (s SpreadCount) In(pod *corev1.Pod) (d SpreadDomain, ok bool) {
	at, counted := s.domain[pod.Spec.NodeName]
	if !counted || !s.selected(pod) {
		return SpreadDomain{}, false
	}
	return s.Domains[at], true
}

// Of returns the domain of a node; ok is false for one that does not count.
func (s SpreadCount) Of(node string) (d SpreadDomain, ok bool) {
	at, counted := s.domain[node]
	if !counted {
		return SpreadDomain{}, false
	}
	return s.Domains[at], true
}

// SpreadCounts counts what the spread constraints of a role that must be met count, in their order. One that cannot be read is left out.
func (c *Cluster) SpreadCounts(role Role) (all []SpreadCount) {
	constraints, keys := requiredSpread(role.Pod)
	if len(constraints) == 0 {
		return nil
	}
	rules, _ := c.usableBy(context.Background(), role)
	for _, constraint := range constraints {
		selector, err := spreadSelector(constraint, role.Pod)
		if err != nil {
			continue
		}
		of := c.topology(constraint.TopologyKey)
		r := newSpreadRule(role.Pod, constraint, keys, selector)
		r.count(c, of.domain, len(of.numbers), rules)
		all = append(all, r.summed(c, of))
	}
	return all
}

// summed is the count of a rule by values.
func (r *spreadRule) summed(c *Cluster, of *topology) SpreadCount {
	s := SpreadCount{Constraint: r.constraint, self: r.self, selected: r.selects, Least: r.least(r.base), domain: map[string]int{}}
	for value, d := range of.numbers {
		if r.base[d] >= 0 {
			s.Domains = append(s.Domains, SpreadDomain{value, r.base[d]})
		}
	}
	slices.SortFunc(s.Domains, func(a, b SpreadDomain) int { return cmp.Compare(a.Value, b.Value) })
	for at, n := range c.nodes {
		if r.counted[at] {
			value := n.obj.Labels[r.constraint.TopologyKey]
			s.domain[n.obj.Name], _ = slices.BinarySearchFunc(s.Domains, value, func(d SpreadDomain, value string) int { return cmp.Compare(d.Value, value) })
		}
	}
	return s
}

package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// crossNode are the constraints between members on different nodes: those about topology domains, and about claims that only one
// pod may use. Domains are numbered for each topology key.
type crossNode struct {
	t          *task
	keys       []string
	keyIndex   map[string]int
	domain     [][]int // by key, then node: the number of its domain, -1 without the label
	domains    []int   // by key: how many domains there are
	onePerNode []bool  // by key: no two nodes share a domain

	separations []separationRule
	affinity    []*affinityRule // by role, nil if it has none
	spread      [][]*spreadRule // by role
}

// separationRule keeps two roles out of the same domain.
type separationRule struct {
	key, a, b  int
	constraint Constraint
}

// empty reports whether nothing ties members to each other.
func (x *crossNode) empty() bool {
	return len(x.separations) == 0 && !slices.ContainsFunc(x.affinity, func(r *affinityRule) bool { return r != nil }) &&
		!slices.ContainsFunc(x.spread, func(r []*spreadRule) bool { return len(r) > 0 })
}

// key numbers a topology key and its domains.
func (x *crossNode) key(name string) int {
	if i, ok := x.keyIndex[name]; ok {
		return i
	}
	of := x.t.c.topology(name)
	x.keyIndex[name] = len(x.keys)
	x.onePerNode = append(x.onePerNode, of.onePerNode())
	x.keys, x.domain, x.domains = append(x.keys, name), append(x.domain, of.domain), append(x.domains, len(of.numbers))
	return x.keyIndex[name]
}

// addCheck adds a check to a role for a rule that members cannot change.
func (x *crossNode) addCheck(i int, rule func(*Cluster, *corev1.Pod) check) {
	r := x.t.roles[i].rules
	if check := rule(x.t.c, r.pod); check != nil {
		r.checks, r.wide = append(r.checks, check), true
	}
}

// addAntiAffinity records required anti-affinity between two roles: on one node if every node has its own value of the key, else
// across nodes.
func (x *crossNode) addAntiAffinity(key string, a, b int) {
	if x.t.c.topology(key).onePerNode() {
		x.t.sameNode = append(x.t.sameNode, sameNodeRule{key: key, a: a, b: b, constraint: PodAntiAffinity})
		return
	}
	x.separations = append(x.separations, separationRule{x.key(key), a, b, PodAntiAffinity})
}

// addExclusiveClaims separates members that use the same ReadWriteOncePod claim: only one pod may use it at a time.
func (x *crossNode) addExclusiveClaims() {
	for a := range x.t.roles {
		if x.t.ignores(a, VolumeClaim) {
			continue
		}
		mine := x.t.c.exclusiveClaims(x.t.roles[a].rules.pod)
		for b := a; b < len(x.t.roles) && len(mine) > 0; b++ {
			if mine.HasAny(x.t.c.exclusiveClaims(x.t.roles[b].rules.pod).UnsortedList()...) {
				x.separations = append(x.separations, separationRule{x.key(everywhere), a, b, VolumeClaim})
			}
		}
	}
}

// maxMembers is how many members of a role the candidates take at most, and the rule that limits them most; alone is what they would
// take without any rule.
func (x *crossNode) maxMembers(candidates []*candidate, i int, alone int64) (int64, Constraint) {
	most, limit := alone, Constraint("")
	for _, r := range x.separations {
		if r.a != i || r.b != i {
			continue
		}
		var sum int64
		taken := map[int]bool{}
		for _, s := range candidates {
			switch d := x.domain[r.key][s.pos]; {
			case d < 0:
				sum += int64(s.slots[i])
			case s.slots[i] > 0 && !taken[d]:
				taken[d] = true
				sum++
			}
		}
		if sum < most {
			most, limit = sum, r.constraint
		}
	}
	for _, r := range x.spread[i] {
		if n := r.maxMembers(x, candidates, i); n < most {
			most, limit = n, TopologySpread
		}
	}
	return most, limit
}

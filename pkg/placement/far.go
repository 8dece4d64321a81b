package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
)

// far is what members do to each other across nodes.
type far struct {
	t        *task
	keys     []string
	keyIndex map[string]int
	domain   [][]int // by key, then node: the number of its domain, -1 without the label
	domains  []int   // by key: how many domains there are
	single   []bool  // by key: no two nodes share a domain

	apart    []apartRule
	affinity []*affinityRule // by class, nil if it has none
	spread   [][]*spreadRule // by class
}

// apartRule keeps two classes out of the same domain.
type apartRule struct {
	key, a, b int
	word      Constraint
}

// affinityRule puts a class where members (or pods that are there) of classes that match are.
type affinityRule struct {
	keys     []int
	match    []bool  // by class
	base     [][]int // by position in keys, then domain: pods outside the gang that match
	existing int     // pods outside the gang that match
	anywhere bool    // a matching member counts as existing even on a node without the labels
}

func (f *far) empty() bool {
	return len(f.apart) == 0 && !slices.ContainsFunc(f.affinity, func(r *affinityRule) bool { return r != nil }) &&
		!slices.ContainsFunc(f.spread, func(r []*spreadRule) bool { return len(r) > 0 })
}

// everywhere is the key of the one domain that all nodes are in.
const everywhere = ""

// key numbers a topology key and its domains.
func (f *far) key(name string) int {
	if i, ok := f.keyIndex[name]; ok {
		return i
	}
	domain := make([]int, len(f.t.c.nodes))
	values := map[string]int{}
	for i, n := range f.t.c.nodes {
		value, ok := n.obj.Labels[name]
		if name == everywhere {
			value, ok = "", true
		}
		if !ok {
			domain[i] = -1
			continue
		}
		number, known := values[value]
		if !known {
			number = len(values)
			values[value] = number
		}
		domain[i] = number
	}
	f.keyIndex[name] = len(f.keys)
	f.single = append(f.single, f.t.c.tellsNodesApart(name))
	f.keys, f.domain, f.domains = append(f.keys, name), append(f.domain, domain), append(f.domains, len(values))
	return f.keyIndex[name]
}

// count counts the pods on nodes that match all the terms.
func (r *affinityRule) count(f *far, terms []fwk.AffinityTerm) {
	r.anywhere = utilfeature.DefaultFeatureGate.Enabled(features.InterPodAffinityHostnameFastPath)
	for i, k := range r.keys {
		r.base = append(r.base, make([]int, f.domains[k]))
		r.anywhere = r.anywhere && terms[i].TopologyKey == corev1.LabelHostname
	}
	for at, n := range f.t.c.nodes {
		matching := 0
		for _, p := range n.info.Pods {
			if !slices.ContainsFunc(terms, func(term fwk.AffinityTerm) bool {
				return !term.Matches(p.GetPod(), f.t.c.namespaceLabels(p.GetPod().Namespace))
			}) {
				matching++
			}
		}
		labelled := r.anywhere
		for i, k := range r.keys {
			if d := f.domain[k][at]; d >= 0 {
				r.base[i][d] += matching
				labelled = true
			}
		}
		if labelled {
			r.existing += matching
		}
	}
}

// relateClaims keeps members apart that use the same ReadWriteOncePod claim: only one pod may use it at a time.
func (f *far) relateClaims() {
	if f.t.opts.Ignore.Has(VolumeClaim) {
		return
	}
	for a := range f.t.classes {
		mine := f.t.c.exclusiveClaims(f.t.classes[a].rules.pod)
		for b := a; b < len(f.t.classes) && len(mine) > 0; b++ {
			if mine.HasAny(f.t.c.exclusiveClaims(f.t.classes[b].rules.pod).UnsortedList()...) {
				f.apart = append(f.apart, apartRule{f.key(everywhere), a, b, VolumeClaim})
			}
		}
	}
}

// ceiling is how many members of a class the sites take at most, and the rule that limits them most; alone is what they would
// take without any rule.
func (f *far) ceiling(sites []*site, i int, alone int64) (int64, Constraint) {
	most, word := alone, Constraint("")
	for _, r := range f.apart {
		if r.a != i || r.b != i {
			continue
		}
		var sum int64
		taken := map[int]bool{}
		for _, s := range sites {
			switch d := f.domain[r.key][s.pos]; {
			case d < 0:
				sum += int64(s.slots[i])
			case s.slots[i] > 0 && !taken[d]:
				taken[d] = true
				sum++
			}
		}
		if sum < most {
			most, word = sum, r.word
		}
	}
	for _, r := range f.spread[i] {
		if n := r.ceiling(f, sites, i); n < most {
			most, word = n, TopologySpread
		}
	}
	return most, word
}

package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// spreadRule is one topology spread constraint with DoNotSchedule of a class, and what it counts before any member is placed.
type spreadRule struct {
	key     int
	skew    int
	min     int    // domains below which the least count is taken as 0
	match   []bool // by class: its members are counted
	self    bool   // members of the class itself match the selector
	counted []bool // by node: its pods and its domain count
	base    []int  // by domain; -1 for a domain without a counted node
}

// relateSpread records the spread constraints of a class.
func (f *far) relateSpread(i int) {
	pod := f.t.classes[i].rules.pod
	if f.t.opts.Ignore.Has(TopologySpread) {
		return
	}
	var all []corev1.TopologySpreadConstraint
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			all = append(all, c)
		}
	}
	var out []*spreadRule
	moves := false
	for _, c := range all {
		selector, err := spreadSelector(c, pod)
		if err != nil { // the plugin rejects the pod everywhere
			f.fixed(i, f.t.c.evenly)
			return
		}
		r := &spreadRule{key: f.key(c.TopologyKey), skew: int(c.MaxSkew), min: int(ptr.Deref(c.MinDomains, 1)), match: make([]bool, len(f.t.classes))}
		r.self = selector.Matches(labels.Set(pod.Labels))
		for b := range f.t.classes {
			other := f.t.classes[b].rules.pod
			r.match[b] = !selector.Empty() && other.Namespace == pod.Namespace && selector.Matches(labels.Set(other.Labels))
			moves = moves || r.match[b]
		}
		r.count(f, i, all, c, selector)
		out = append(out, r)
	}
	if !moves { // no member changes what is counted
		f.fixed(i, f.t.c.evenly)
		return
	}
	f.spread[i] = out
}

func spreadSelector(c corev1.TopologySpreadConstraint, pod *corev1.Pod) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return nil, err
	}
	for _, key := range c.MatchLabelKeys {
		if value, ok := pod.Labels[key]; ok {
			one, _ := labels.SelectorFromSet(labels.Set{key: value}).Requirements()
			selector = selector.Add(one...)
		}
	}
	return selector, nil
}

// count counts the matching pods of every domain on the nodes that the constraint includes.
func (r *spreadRule) count(f *far, i int, all []corev1.TopologySpreadConstraint, c corev1.TopologySpreadConstraint, selector labels.Selector) {
	rules := f.t.classes[i].rules
	r.counted = make([]bool, len(f.t.c.nodes))
	r.base = make([]int, f.domains[r.key])
	for d := range r.base {
		r.base[d] = -1
	}
	for at, n := range f.t.c.nodes {
		if !hasKeys(n.obj, all) || !rules.includes(c, n.obj) {
			continue
		}
		r.counted[at] = true
		d := f.domain[r.key][at]
		r.base[d] = max(r.base[d], 0)
		for _, p := range n.info.Pods {
			pod := p.GetPod()
			if !selector.Empty() && pod.DeletionTimestamp == nil && pod.Namespace == rules.pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
				r.base[d]++
			}
		}
	}
}

func hasKeys(n *corev1.Node, all []corev1.TopologySpreadConstraint) bool {
	for _, c := range all {
		if _, ok := n.Labels[c.TopologyKey]; !ok {
			return false
		}
	}
	return true
}

// includes tells whether a constraint counts a node, by its inclusion policies. Rules that are ignored do not take a node out.
func (r *rules) includes(c corev1.TopologySpreadConstraint, n *corev1.Node) bool {
	if ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor {
		selected, _ := r.selector.Match(n)
		required, _ := r.affinity.Match(n)
		if !selected && !r.ignore.Has(NodeSelector) || !required && !r.ignore.Has(NodeAffinity) {
			return false
		}
	}
	if ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor {
		if _, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return !r.ignore.Has(taintWord(*t)) }); found {
			return false
		}
	}
	return true
}

package placement

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/utils/ptr"
)

// spreadCheck rejects nodes by the pod's topology spread constraints.
func spreadCheck(c *Cluster, pod *corev1.Pod) check {
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		return nil
	}
	_, features := c.store.get(c.objects)
	p, err := podtopologyspread.New(context.Background(), &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, c.handle(), features)
	return checkOf(TopologySpread, c.filterFor(mustFilter(p, err), pod))
}

// spreadRule is one topology spread constraint with DoNotSchedule of a role, and what it counts before any member is placed.
type spreadRule struct {
	key   int
	skew  int
	min   int    // domains below which the least count is taken as 0
	match []bool // by role: its members are counted
	self  bool   // members of the role itself match the selector

	constraint corev1.TopologySpreadConstraint
	keys       []string // those of all the role's constraints: a node without one of them is not counted
	namespace  string
	selector   labels.Selector

	counted []bool // by node: its pods and its domain count; nil until they have been counted
	base    []int  // by domain; -1 for a domain without a counted node
}

// addSpread records the spread constraints of a role.
func (x *crossNode) addSpread(i int) {
	pod := x.t.roles[i].rules.pod
	if x.t.ignores(i, TopologySpread) {
		return
	}
	var out []*spreadRule
	moves := false
	all, keys := requiredSpread(pod)
	for _, c := range all {
		selector, err := spreadSelector(c, pod)
		if err != nil { // the plugin rejects the pod everywhere
			x.addCheck(i, spreadCheck)
			return
		}
		r := newSpreadRule(pod, c, keys, selector)
		r.key, r.match = x.key(c.TopologyKey), make([]bool, len(x.t.roles))
		for b := range x.t.roles {
			other := x.t.roles[b].rules.pod
			r.match[b] = !selector.Empty() && other.Namespace == pod.Namespace && selector.Matches(labels.Set(other.Labels))
			moves = moves || r.match[b]
		}
		out = append(out, r)
	}
	if !moves { // no member changes what is counted
		x.addCheck(i, spreadCheck)
		return
	}
	x.spread[i] = out
}

// requiredSpread are the constraints that must be met, and their keys.
func requiredSpread(pod *corev1.Pod) (all []corev1.TopologySpreadConstraint, keys []string) {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			all, keys = append(all, c), append(keys, c.TopologyKey)
		}
	}
	return all, keys
}

// newSpreadRule is a constraint of a pod, of which nothing has been counted.
func newSpreadRule(pod *corev1.Pod, c corev1.TopologySpreadConstraint, keys []string, selector labels.Selector) *spreadRule {
	return &spreadRule{
		skew: int(c.MaxSkew), min: int(ptr.Deref(c.MinDomains, 1)), self: selector.Matches(labels.Set(pod.Labels)),
		constraint: c, keys: keys, namespace: pod.Namespace, selector: selector,
	}
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

// countSpread counts the pods that the spread constraints select, unless they have been counted.
func (t *task) countSpread() {
	if t.crossNode == nil {
		return
	}
	for i, rules := range t.crossNode.spread {
		for _, r := range rules {
			if r.counted == nil {
				r.count(t.c, t.crossNode.domain[r.key], t.crossNode.domains[r.key], t.roles[i].rules)
			}
		}
	}
}

// count counts the matching pods of every domain on the nodes that the constraint includes. domain is the number of each node's, of so many in all.
func (r *spreadRule) count(c *Cluster, domain []int, domains int, rules *rules) {
	r.counted = make([]bool, len(c.nodes))
	r.base = make([]int, domains)
	for d := range r.base {
		r.base[d] = -1
	}
	for at, n := range c.nodes {
		if !r.counts(rules, n.obj) {
			continue
		}
		r.counted[at] = true
		d := domain[at]
		r.base[d] = max(r.base[d], 0)
		for _, p := range n.info.Pods {
			if r.selects(p.GetPod()) {
				r.base[d]++
			}
		}
	}
}

// counts reports whether the constraint counts a node.
func (r *spreadRule) counts(rules *rules, n *corev1.Node) bool {
	for _, key := range r.keys {
		if _, ok := n.Labels[key]; !ok {
			return false
		}
	}
	return rules.includes(r.constraint, n)
}

// selects reports whether the constraint counts a pod, on a node that it counts.
func (r *spreadRule) selects(pod *corev1.Pod) bool {
	return !r.selector.Empty() && pod.DeletionTimestamp == nil && pod.Namespace == r.namespace && r.selector.Matches(labels.Set(pod.Labels))
}

// includes reports whether a constraint counts a node, by its inclusion policies. Rules that are ignored do not take a node out.
func (r *rules) includes(c corev1.TopologySpreadConstraint, n *corev1.Node) bool {
	if ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor {
		selected, _ := r.selector.Match(n)
		required, _ := r.affinity.Match(n)
		if !selected && !r.ignore.Has(NodeSelector) || !required && !r.ignore.Has(NodeAffinity) {
			return false
		}
	}
	if ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor {
		if _, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return !r.ignore.Has(taintConstraint(*t)) }); found {
			return false
		}
	}
	return true
}

// least is the count that the skew is measured from.
func (r *spreadRule) least(counts []int) int {
	domains, least := 0, math.MaxInt32
	for d, n := range counts {
		if r.base[d] >= 0 {
			domains++
			least = min(least, n)
		}
	}
	if domains < r.min {
		return 0
	}
	return least
}

// maxMembers is how many members of role i the rule lets onto the candidates at most: no domain gets further ahead than the skew of the
// domain that stays behind most when everything that counts is filled in.
func (r *spreadRule) maxMembers(x *crossNode, candidates []*candidate, i int) int64 {
	if !r.self || !r.match[i] {
		return math.MaxInt64
	}
	mine, filled := make([]int, len(r.base)), make([]int, len(r.base))
	for d := range filled {
		filled[d] = max(r.base[d], 0)
	}
	for _, s := range candidates {
		d := x.domain[r.key][s.pos]
		if d < 0 {
			continue
		}
		mine[d] += s.slots[i]
		for b, counts := range r.match {
			if counts && r.counted[s.pos] {
				filled[d] += s.slots[b]
			}
		}
	}
	// Every pod of the gang counts at most once; more than all of them cannot be ahead.
	most := r.least(filled) + r.skew
	var sum int64
	for d := range mine {
		sum += int64(min(mine[d], max(0, most-max(r.base[d], 0))))
	}
	return sum
}

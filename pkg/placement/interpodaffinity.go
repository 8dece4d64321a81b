package placement

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
)

// interPodFilter is the upstream plugin for the affinity of the pod as it stands.
func interPodFilter(c *Cluster, pod *corev1.Pod) func(*node) string {
	_, features := c.store.get(c.objects)
	p, err := interpodaffinity.New(context.Background(), &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, c.handle(), features)
	return c.filterFor(mustFilter(p, err), pod)
}

// antiAffinityCheck rejects nodes by required anti-affinity: the pod's own, and that of pods that are there. There is nothing to check where no pod that
// is there is concerned, as of a gang whose members keep each other off their nodes.
func antiAffinityCheck(c *Cluster, pod *corev1.Pod) check {
	if !c.repelled(pod) && !c.repels(pod) {
		return nil
	}
	only := *pod
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		only.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: a.PodAntiAffinity}
	}
	return checkOf(PodAntiAffinity, interPodFilter(c, &only))
}

// repelled reports whether required anti-affinity of a pod that is there selects the pod, or of one that a what-if took away. Most clusters have pods with
// anti-affinity, to each other: no other pod is to pay for them.
func (c *Cluster) repelled(pod *corev1.Pod) bool {
	namespace := c.namespaceLabels(pod.Namespace)
	if c.indexed() && c.index.antiAffinity.repels(pod, namespace) {
		return true
	}
	for n := range c.unindexed() {
		for _, there := range n.info.PodsWithRequiredAntiAffinity {
			for _, term := range there.GetRequiredAntiAffinityTerms() {
				if term.Matches(pod, namespace) {
					return true
				}
			}
		}
	}
	return false
}

// repels reports whether required anti-affinity of the pod selects a pod that is there, or one that a what-if took away. It is true as well where only a look at
// every pod would show.
func (c *Cluster) repels(pod *corev1.Pod) bool {
	if a := pod.Spec.Affinity; a == nil || a.PodAntiAffinity == nil || len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		return false
	}
	if !c.indexed() {
		return true
	}
	for _, term := range podInfo(pod).RequiredAntiAffinityTerms {
		like, ok := c.index.podsLike(term.Selector)
		if !ok {
			return true
		}
		for there := range like {
			if term.Matches(there, c.namespaceLabels(there.Namespace)) {
				return true
			}
		}
		for at := range c.whatIf {
			for _, there := range c.nodes[at].info.Pods {
				if term.Matches(there.GetPod(), c.namespaceLabels(there.GetPod().Namespace)) {
					return true
				}
			}
		}
	}
	return false
}

// podAffinityCheck rejects nodes by the pod's required affinity alone.
func podAffinityCheck(c *Cluster, pod *corev1.Pod) check {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	only := *pod
	only.Spec.Affinity = &corev1.Affinity{PodAffinity: pod.Spec.Affinity.PodAffinity}
	filter := interPodFilter(c, &only)
	if filter == nil {
		return nil
	}
	return checkOf(PodAffinity, func(n *node) string {
		if reason := filter(n); reason == interpodaffinity.ErrReasonAffinityRulesNotMatch {
			return reason
		}
		return ""
	})
}

// affinityRule puts a role where members (or pods that are there) of roles that match are.
type affinityRule struct {
	keys     []int
	match    []bool  // by role
	base     [][]int // by position in keys, then domain: pods outside the gang that match
	existing int     // pods outside the gang that match
	anywhere bool    // a matching member counts as existing even on a node without the labels
}

// addAffinity records the required affinity of a role to members.
func (x *crossNode) addAffinity(infos []*framework.PodInfo, i int) {
	terms := infos[i].RequiredAffinityTerms
	if len(terms) == 0 || x.t.ignores(i, PodAffinity) {
		return
	}
	r := &affinityRule{match: make([]bool, len(infos))}
	for b := range infos {
		r.match[b] = !slices.ContainsFunc(terms, func(term fwk.AffinityTerm) bool { return !x.t.matches(term, b) })
	}
	if !slices.Contains(r.match, true) {
		x.addCheck(i, podAffinityCheck)
		return
	}
	for _, term := range terms {
		r.keys = append(r.keys, x.key(term.TopologyKey))
	}
	r.count(x, terms)
	x.affinity[i] = r
}

// count counts the pods on nodes that match all the terms.
func (r *affinityRule) count(x *crossNode, terms []fwk.AffinityTerm) {
	r.anywhere = utilfeature.DefaultFeatureGate.Enabled(features.InterPodAffinityHostnameFastPath)
	for i, k := range r.keys {
		r.base = append(r.base, make([]int, x.domains[k]))
		r.anywhere = r.anywhere && terms[i].TopologyKey == corev1.LabelHostname
	}
	for at, n := range x.t.c.nodes {
		matching := 0
		for _, p := range n.info.Pods {
			if !slices.ContainsFunc(terms, func(term fwk.AffinityTerm) bool {
				return !term.Matches(p.GetPod(), x.t.c.namespaceLabels(p.GetPod().Namespace))
			}) {
				matching++
			}
		}
		labelled := r.anywhere
		for i, k := range r.keys {
			if d := x.domain[k][at]; d >= 0 {
				r.base[i][d] += matching
				labelled = true
			}
		}
		if labelled {
			r.existing += matching
		}
	}
}

// simplifyAffinity takes out the affinity that needs no search: of roles that pods outside the gang tie to domains already, and of a
// gang whose members all have affinity to each other and to no other pod, which goes to one domain as a whole.
func (x *crossNode) simplifyAffinity(infos []*framework.PodInfo) {
	same := func(a, b int) bool {
		return reflect.DeepEqual(termsOf(infos[a].Pod), termsOf(infos[b].Pod)) && infos[a].Pod.Namespace == infos[b].Pod.Namespace
	}
	tied := make([]bool, len(infos))
	group := len(infos) > 0
	for a, r := range x.affinity {
		tied[a] = r != nil && r.existing > 0
		group = group && r != nil && r.existing == 0 && same(a, 0)
		for b := range infos {
			if r != nil && r.match[b] && !same(a, b) {
				tied[a] = false
			}
			group = group && r != nil && r.match[b]
		}
	}
	for a := range infos {
		if tied[a] {
			x.addCheck(a, podAffinityCheck)
			x.affinity[a] = nil
		}
	}
	if group {
		for _, k := range x.affinity[0].keys {
			x.t.sharedKeys = append(x.t.sharedKeys, x.keys[k])
		}
		x.affinity = make([]*affinityRule, len(infos))
	}
}

// termsOf returns the required affinity terms of a pod.
func termsOf(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// matches reports whether an affinity term selects the members of a role.
func (t *task) matches(term fwk.AffinityTerm, i int) bool {
	pod := t.roles[i].rules.pod
	return term.Matches(pod, t.c.namespaceLabels(pod.Namespace))
}

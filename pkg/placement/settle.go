package placement

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// relateAffinity records the required affinity of a class to members.
func (f *far) relateAffinity(infos []*framework.PodInfo, i int) {
	terms := infos[i].RequiredAffinityTerms
	if len(terms) == 0 || f.t.opts.Ignore.Has(PodAffinity) {
		return
	}
	r := &affinityRule{match: make([]bool, len(infos))}
	for b := range infos {
		r.match[b] = !slices.ContainsFunc(terms, func(term fwk.AffinityTerm) bool { return !f.t.matches(term, b) })
	}
	if !slices.Contains(r.match, true) {
		f.fixed(i, f.t.c.together)
		return
	}
	for _, term := range terms {
		r.keys = append(r.keys, f.key(term.TopologyKey))
	}
	r.count(f, terms)
	f.affinity[i] = r
}

// fixed adds a check to a class for a rule that members cannot change.
func (f *far) fixed(i int, rule func(*corev1.Pod) check) {
	r := f.t.classes[i].rules
	if check := rule(r.pod); check != nil {
		r.checks = append(r.checks, check)
	}
}

// settle takes out the affinity that needs no search: of classes that pods outside the gang tie to places already, and of a gang
// whose members all want to be with each other and nobody else, which goes to one domain as a whole.
func (f *far) settle(infos []*framework.PodInfo) {
	same := func(a, b int) bool {
		return reflect.DeepEqual(termsOf(infos[a].Pod), termsOf(infos[b].Pod)) && infos[a].Pod.Namespace == infos[b].Pod.Namespace
	}
	settled := make([]bool, len(infos))
	group := len(infos) > 0
	for a, r := range f.affinity {
		settled[a] = r != nil && r.existing > 0
		group = group && r != nil && r.existing == 0 && same(a, 0)
		for b := range infos {
			if r != nil && r.match[b] && !same(a, b) {
				settled[a] = false
			}
			group = group && r != nil && r.match[b]
		}
	}
	for a := range infos {
		if settled[a] {
			f.fixed(a, f.t.c.together)
			f.affinity[a] = nil
		}
	}
	if group {
		for _, k := range f.affinity[0].keys {
			f.t.group = append(f.t.group, f.keys[k])
		}
		f.affinity = make([]*affinityRule, len(infos))
	}
}

func termsOf(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

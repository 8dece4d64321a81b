package view

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// exclusion is a rule by which parts of a gang have a topology domain for themselves, as the simulation has it. Between members it is a rule for parts. What the
// controller's webhook wrote of it into the pods that are made, and would write into the others, is taken out of them: it would be a second rule of the same meaning. In its
// place all members of a part without a node have anti-affinity to those pods of other jobs that are in the way now.
type exclusion struct {
	gang.Exclusive
	divide func(metav1.Object) (part string, ok bool)
	// settled are the parts of which a member has a node: the others follow it, whoever else is there.
	settled map[string]bool
	// others are the values of the rule's label that pods in the way have, by the label of nodes whose domains they keep the gang out of.
	others map[string]sets.Set[string]
}

// exclusions are the rules of a gang. unmodelled names them where it is not known which part each member is in.
func (w *View) exclusions(g *gang.Gang) (all []exclusion, unmodelled []string) {
	if len(g.Exclusive) > 0 && len(g.Unlisted) > 0 {
		return nil, append(slices.Clip(g.Unmodelled), "the topology domains that parts of it have for themselves, of more members than are listed")
	}
	for _, rule := range g.Exclusive {
		x := exclusionOf(g, rule)
		own := sets.New[string]()
		for _, pod := range g.Pods() {
			own.Insert(pod.Labels[rule.Label])
		}
		x.others = w.keptOut(g, rule, own)
		all = append(all, x)
	}
	return all, g.Unmodelled
}

// exclusionOf is a rule of a gang between its members.
func exclusionOf(g *gang.Gang, rule gang.Exclusive) exclusion {
	x := exclusion{Exclusive: rule, divide: rule.Rule.Divide(), settled: map[string]bool{}}
	for _, m := range g.Members {
		if m.State == gang.Starting || m.State == gang.Running {
			if part, in := x.divide(m.Pod); in {
				x.settled[part] = true
			}
		}
	}
	return x
}

// keptOut finds the pods on nodes that members of a gang may not share a domain with: those of other jobs, which have other values of the rule's label than its own, and
// those whose own anti-affinity selects the members by that label, whatever domain that is about.
func (w *View) keptOut(g *gang.Gang, rule gang.Exclusive, own sets.Set[string]) map[string]sets.Set[string] {
	others := map[string]sets.Set[string]{}
	add := func(key, value string) {
		if others[key] == nil {
			others[key] = sets.New[string]()
		}
		others[key].Insert(value)
	}
	priority := w.priorityOf(g, rule)
	member := labels.Set{rule.Label: "-"} // a value that no other has
	if rule.PriorityLabel != "" {
		member[rule.PriorityLabel] = priority
	}
	for _, pod := range w.Snap.Pods {
		value := pod.Labels[rule.Label]
		if value == "" || own.Has(value) || !placement.Holds(pod) {
			continue
		}
		same := rule.Namespaces || pod.Namespace == g.Meta.Namespace
		if of, has := pod.Labels[rule.PriorityLabel]; same && (!has || of == priority) {
			add(rule.Rule.Required, value)
		}
		if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				if (same || term.NamespaceSelector != nil) && selectsBy(term, rule.Label, member) {
					add(term.TopologyKey, value)
				}
			}
		}
	}
	return others
}

// priorityOf is the priority that the members of a gang have, as text.
func (w *View) priorityOf(g *gang.Gang, rule gang.Exclusive) string {
	for _, m := range g.Members {
		if m.Pod != nil && m.Pod.Labels[rule.PriorityLabel] != "" {
			return m.Pod.Labels[rule.PriorityLabel]
		}
	}
	for _, role := range g.Roles {
		if pod := w.Virtual(g, gang.Member{Role: role.Name}); pod.Spec.Priority != nil {
			return strconv.Itoa(int(*pod.Spec.Priority))
		}
	}
	return "0"
}

// selectsBy reports whether a term is about a label, and selects pods with some labels.
func selectsBy(term corev1.PodAffinityTerm, label string, have labels.Set) bool {
	if !isAbout(term, label) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	return err == nil && selector.Matches(have)
}

// isAbout reports whether a term selects pods by a label.
func isAbout(term corev1.PodAffinityTerm, label string) bool {
	return term.LabelSelector != nil && slices.ContainsFunc(term.LabelSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == label })
}

// applied is the pod of a member as the simulation has it.
func (x exclusion) applied(pod *corev1.Pod) *corev1.Pod {
	part, in := x.divide(pod)
	if !in {
		return pod
	}
	p := *pod
	p.Labels = maps.Clone(pod.Labels)
	delete(p.Labels, x.Label) // by which the anti-affinity of the gang's own pods would select it
	affinity := &corev1.Affinity{}
	if pod.Spec.Affinity != nil {
		affinity = pod.Spec.Affinity.DeepCopy()
	}
	about := func(term corev1.PodAffinityTerm) bool { return isAbout(term, x.Label) }
	if a := affinity.PodAffinity; a != nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(a.RequiredDuringSchedulingIgnoredDuringExecution, about)
		if len(a.RequiredDuringSchedulingIgnoredDuringExecution)+len(a.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
			affinity.PodAffinity = nil
		}
	}
	anti := &corev1.PodAntiAffinity{}
	if affinity.PodAntiAffinity != nil {
		anti = affinity.PodAntiAffinity
	}
	terms := slices.DeleteFunc(anti.RequiredDuringSchedulingIgnoredDuringExecution, about)
	if !x.settled[part] {
		for _, key := range slices.Sorted(maps.Keys(x.others)) {
			in := metav1.LabelSelectorRequirement{Key: x.Label, Operator: metav1.LabelSelectorOpIn, Values: sets.List(x.others[key])}
			terms = append(terms, corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in}}, TopologyKey: key, NamespaceSelector: &metav1.LabelSelector{},
			})
		}
	}
	anti.RequiredDuringSchedulingIgnoredDuringExecution = terms
	if affinity.PodAntiAffinity = anti; len(terms)+len(anti.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		affinity.PodAntiAffinity = nil
	}
	if p.Spec.Affinity = affinity; affinity.NodeAffinity == nil && affinity.PodAffinity == nil && affinity.PodAntiAffinity == nil {
		p.Spec.Affinity = nil
	}
	return &p
}

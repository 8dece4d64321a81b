package cohort

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Exclusion is a flavor that has enough for pod sets, and that rules of their own keep some of them off.
type Exclusion struct {
	FlavorQuota
	// NodeLabels are those of its nodes.
	NodeLabels map[string]string
	// Rules are what keeps each pod set off it, by the name of the set.
	Rules map[string][]Rule
}

// Rule is what keeps pods off a flavor.
type Rule struct {
	// Field is nodeSelector, nodeAffinity or tolerations.
	Field string
	// Key is that of the label that the pods select, Was the value that they select, unless that is of an affinity, and To the one that the flavor has; empty if it has none.
	Key, Was, To string
	// Taint is one of the flavor's that they do not tolerate.
	Taint corev1.Taint
}

// Exclusions are the flavors that have enough of a resource, or of whatever one set requests if none is named, for all pod sets, if those are not kept off them that this set is
// kept off.
func (a *Availability) Exclusions(name corev1.ResourceName, podSet string, podSets ...PodSet) (all []Exclusion) {
	i := slices.IndexFunc(podSets, func(set PodSet) bool { return set.Name == podSet })
	if i < 0 {
		return nil
	}
	for _, group := range a.groups() {
		flavors := a.requestedFlavors(podSets[i], group)
		keys := a.tree.keys(flavors)
		for _, flavor := range flavors {
			quota, has := a.quotaOf(podSets[i], group, flavor, name)
			if !has || a.tree.suits(podSets[i].Spec, flavor, keys) {
				continue
			}
			x := Exclusion{FlavorQuota: quota, NodeLabels: a.tree.flavors[flavor].NodeLabels, Rules: map[string][]Rule{}}
			changed := slices.Clone(podSets)
			for j, set := range podSets {
				if len(a.requestedFlavors(set, group)) == 0 || a.tree.suits(set.Spec, flavor, keys) {
					continue
				}
				x.Rules[set.Name] = a.tree.rules(set.Spec, flavor, keys)
				spec := set.Spec.DeepCopy()
				for _, rule := range x.Rules[set.Name] {
					rule.Change(spec)
				}
				changed[j].Spec = *spec
			}
			unused := a.Clone()
			if _, short := unused.Assign(changed...); short == nil {
				all = append(all, x)
			}
		}
	}
	return all
}

// quotaOf is the quota of a flavor for a resource; if none is named, for a device that a pod set requests, or else for anything that it does.
func (a *Availability) quotaOf(set PodSet, group int, flavor string, name corev1.ResourceName) (found FlavorQuota, has bool) {
	for _, q := range a.quotas {
		requested := request.Amount(q.Name, set.Requests[q.Name]) > 0
		switch {
		case q.group != group || q.Flavor != flavor:
		case name != "" && q.Name == name:
			return q, true
		case name == "" && requested && (!has || request.IsDevice(q.Name)):
			found, has = q, true
		}
	}
	return found, has
}

// rules are what keeps a pod off a flavor, as far as that can be changed by itself: of an affinity with alternatives nothing can.
func (t *Tree) rules(pod corev1.PodSpec, flavor string, keys map[string]bool) (all []Rule) {
	spec := t.flavors[flavor]
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		if was := pod.NodeSelector[key]; keys[key] && spec.NodeLabels[key] != was {
			all = append(all, Rule{Field: "nodeSelector", Key: key, Was: was, To: spec.NodeLabels[key]})
		}
	}
	for _, e := range onlyTerm(&pod) {
		value, has := spec.NodeLabels[e.Key]
		listed, matches := slices.Contains(e.Values, value), true
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			matches = has && listed
		case corev1.NodeSelectorOpNotIn:
			matches = !has || !listed
		case corev1.NodeSelectorOpExists:
			matches = has
		case corev1.NodeSelectorOpDoesNotExist:
			matches = !has
		default: // flavors are not named by numbers
		}
		if keys[e.Key] && !matches {
			all = append(all, Rule{Field: "nodeAffinity", Key: e.Key, To: value})
		}
	}
	tolerated := slices.Concat(pod.Tolerations, spec.Tolerations)
	for _, taint := range spec.NodeTaints {
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		_, untolerated := v1helper.FindMatchingUntoleratedTaint(klog.Background(), []corev1.Taint{taint}, tolerated, func(*corev1.Taint) bool { return true }, false)
		if untolerated {
			all = append(all, Rule{Field: "tolerations", Taint: taint})
		}
	}
	return all
}

// onlyTerm are the requirements of a node affinity that has no alternatives.
func onlyTerm(pod *corev1.PodSpec) []corev1.NodeSelectorRequirement {
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 {
		return nil
	}
	return terms[0].MatchExpressions
}

// Change changes a pod so that the rule no longer keeps it off the flavor.
func (r Rule) Change(pod *corev1.PodSpec) {
	switch r.Field {
	case "tolerations":
		operator := corev1.TolerationOpEqual
		if r.Taint.Value == "" {
			operator = corev1.TolerationOpExists
		}
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: r.Taint.Key, Operator: operator, Value: r.Taint.Value, Effect: r.Taint.Effect})
	case "nodeSelector":
		if r.To == "" {
			delete(pod.NodeSelector, r.Key)
		} else if pod.NodeSelector != nil {
			pod.NodeSelector[r.Key] = r.To
		}
	case "nodeAffinity":
		terms := onlyTerm(pod)
		for i := range terms {
			if terms[i].Key == r.Key && r.To != "" {
				terms[i] = corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOpIn, Values: []string{r.To}}
			}
		}
		if r.To == "" && len(terms) > 0 {
			left := slices.DeleteFunc(terms, func(e corev1.NodeSelectorRequirement) bool { return e.Key == r.Key })
			pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions = left
			if len(left) == 0 && len(pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields) == 0 {
				pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			}
		}
	}
}

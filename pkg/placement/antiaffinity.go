package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// AntiAffinity are the required anti-affinity terms of the pods on nodes, each once, however many pods have it. A pod is compared with the
// terms that require a label which it has, not with each pod that is there.
type AntiAffinity struct {
	terms map[string]*existingTerm
	// byLabel are the terms that require one value of a label, by one such label; others are the rest.
	byLabel map[labelValue]map[*existingTerm]struct{}
	others  map[*existingTerm]struct{}
	// keys counts the terms that select pods by a label, by its key; namespaces counts those that select namespaces by their labels.
	keys       map[string]int
	namespaces int
}

// labelValue is a label and its value.
type labelValue struct{ key, value string }

// existingTerm is a term, and how many pods have it.
type existingTerm struct {
	fwk.AffinityTerm
	pods int
}

func newAntiAffinity() *AntiAffinity {
	return &AntiAffinity{
		terms: map[string]*existingTerm{}, byLabel: map[labelValue]map[*existingTerm]struct{}{}, others: map[*existingTerm]struct{}{}, keys: map[string]int{},
	}
}

// Reads reports whether a term selects pods by the label with a key.
func (a *AntiAffinity) Reads(key string) bool { return a.keys[key] > 0 }

// ReadsNamespaces reports whether a term selects namespaces by their labels.
func (a *AntiAffinity) ReadsNamespaces() bool { return a.namespaces > 0 }

// repels reports whether a term selects a pod in a namespace with these labels.
func (a *AntiAffinity) repels(pod *corev1.Pod, namespace labels.Set) bool {
	for key, value := range pod.Labels {
		if anyMatches(a.byLabel[labelValue{key, value}], pod, namespace) {
			return true
		}
	}
	return anyMatches(a.others, pod, namespace)
}

func anyMatches(terms map[*existingTerm]struct{}, pod *corev1.Pod, namespace labels.Set) bool {
	for t := range terms {
		if t.Matches(pod, namespace) {
			return true
		}
	}
	return false
}

// replace puts the pods with anti-affinity that are on a node now in the place of those that were. A pod that stays where it is in the list costs nothing.
func (a *AntiAffinity) replace(before, now []fwk.PodInfo) {
	for i, pod := range before {
		if i >= len(now) || now[i] != pod {
			a.count(pod, -1)
		}
	}
	for i, pod := range now {
		if i >= len(before) || before[i] != pod {
			a.count(pod, 1)
		}
	}
}

// count adds the terms of a pod; with sign -1 it takes them out.
func (a *AntiAffinity) count(pod fwk.PodInfo, sign int) {
	for _, term := range pod.GetRequiredAntiAffinityTerms() {
		key := termKey(term)
		t, known := a.terms[key]
		if !known {
			t = &existingTerm{AffinityTerm: term}
			a.terms[key] = t
			a.list(t, 1)
		}
		if t.pods += sign; t.pods == 0 {
			delete(a.terms, key)
			a.list(t, -1)
		}
	}
}

// list puts a term where pods that it may select look for it; with sign -1 it takes it out.
func (a *AntiAffinity) list(t *existingTerm, sign int) {
	of, required := requiredLabel(t.Selector)
	at := a.others
	if required {
		if a.byLabel[of] == nil {
			a.byLabel[of] = map[*existingTerm]struct{}{}
		}
		at = a.byLabel[of]
	}
	if sign > 0 {
		at[t] = struct{}{}
	} else if delete(at, t); required && len(at) == 0 {
		delete(a.byLabel, of)
	}
	requirements, _ := t.Selector.Requirements()
	for _, r := range requirements {
		if a.keys[r.Key()] += sign; a.keys[r.Key()] == 0 {
			delete(a.keys, r.Key())
		}
	}
	if _, selects := t.NamespaceSelector.Requirements(); selects { // which a term without a selector does not
		a.namespaces += sign
	}
}

// Closed is a domain of a node label that required anti-affinity keeps a pod off: the nodes of one value, ordered by name.
type Closed struct {
	Key, Value string
	Nodes      []string
}

// KeptOff returns a function for the domains that required anti-affinity keeps a pod off because of one that is there: the anti-affinity of the pod itself, or
// that of the other one.
func (c *Cluster) KeptOff(pod *corev1.Pod) func(there *corev1.Pod) []Closed {
	own, namespace := podInfo(pod).RequiredAntiAffinityTerms, c.namespaceLabels(pod.Namespace)
	domains := map[string]map[string][]string{} // the nodes by their value of a label: many pods close the same ones
	return func(there *corev1.Pod) (all []Closed) {
		at, ok := c.byName[there.Spec.NodeName]
		if !ok {
			return nil
		}
		closes := func(key string) {
			if domains[key] == nil {
				domains[key] = c.nodesBy(key)
			}
			if value, ok := c.nodes[at].obj.Labels[key]; ok && !slices.ContainsFunc(all, func(d Closed) bool { return d.Key == key }) {
				all = append(all, Closed{key, value, domains[key][value]})
			}
		}
		for _, term := range own {
			if term.Matches(there, c.namespaceLabels(there.Namespace)) {
				closes(term.TopologyKey)
			}
		}
		if KeepsApart(there) {
			for _, term := range podInfo(there).RequiredAntiAffinityTerms {
				if term.Matches(pod, namespace) {
					closes(term.TopologyKey)
				}
			}
		}
		return all
	}
}

// nodesBy are the names of the nodes that have a label, by its value.
func (c *Cluster) nodesBy(key string) map[string][]string {
	nodes := map[string][]string{}
	for _, n := range c.nodes {
		if value, ok := n.obj.Labels[key]; ok {
			nodes[value] = append(nodes[value], n.obj.Name)
		}
	}
	return nodes
}

// termKey is equal for terms that select the same pods.
func termKey(t fwk.AffinityTerm) string {
	_, pods := t.Selector.Requirements()
	_, namespaces := t.NamespaceSelector.Requirements()
	return strings.Join([]string{
		fmt.Sprint(pods, namespaces), t.Selector.String(), t.NamespaceSelector.String(), strings.Join(sets.List(t.Namespaces), ","),
	}, between)
}

// requiredLabel returns a label that all pods have which a selector selects; ok is false where it requires none.
func requiredLabel(selector labels.Selector) (of labelValue, ok bool) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if op := r.Operator(); op != selection.Equals && op != selection.DoubleEquals && op != selection.In || r.Values().Len() != 1 {
			continue
		}
		value, _ := r.Values().PopAny()
		return labelValue{r.Key(), value}, true
	}
	return labelValue{}, false
}

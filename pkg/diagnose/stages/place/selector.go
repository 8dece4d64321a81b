package place

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// labelRequirement is one label that the nodes of a role must have.
type labelRequirement struct {
	key    string
	values []string // any of them; empty: the label must exist
	// field is nodeSelector or nodeAffinity.
	field string
}

func (w labelRequirement) String() string {
	if len(w.values) == 0 {
		return w.key
	}
	return w.key + "=" + strings.Join(w.values, "|")
}

func (w labelRequirement) same(other labelRequirement) bool {
	return w.key == other.key && w.field == other.field && slices.Equal(w.values, other.values)
}

func (w labelRequirement) matches(n *corev1.Node) bool {
	value, ok := n.Labels[w.key]
	return ok && (len(w.values) == 0 || slices.Contains(w.values, value))
}

// selector checks that some node carries each label that is selected, and some node all of them.
func selector(c *stage.Context, out *stage.Result, role placement.Role) {
	nodes := c.View.Cluster().Nodes()
	if len(nodes) == 0 {
		return
	}
	all := requirements(role.Pod.Spec)
	for _, w := range all {
		if !slices.ContainsFunc(nodes, w.matches) {
			out.Add(selectorNoMatch(c, role, w))
			return
		}
	}
	m := c.Matrices[role.Name]
	unmatched := len(m.Rejected(placement.NodeSelector)) + len(m.Rejected(placement.NodeAffinity))
	if unmatched == 0 || slices.ContainsFunc(m.Rows, func(r placement.Row) bool {
		return !slices.ContainsFunc(r.Violations, func(v placement.Violation) bool {
			return v.Constraint == placement.NodeSelector || v.Constraint == placement.NodeAffinity
		})
	}) {
		return
	}
	out.Add(stage.Found(answer.SelectorNoMatch, "no node has all the labels that %s requires together: %s", phrase.Role(role.Name), describeRequirements(role.Pod.Spec)).
		Fact("role", phrase.Role(role.Name)))
}

// requirements are the labels that every node of a role must carry. Terms of an affinity are alternatives; with more than one,
// none of them alone is a must.
func requirements(spec corev1.PodSpec) []labelRequirement {
	var all []labelRequirement
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		all = append(all, labelRequirement{key, []string{spec.NodeSelector[key]}, "nodeSelector"})
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return all
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 {
		return all
	}
	for _, e := range terms[0].MatchExpressions {
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			all = append(all, labelRequirement{e.Key, e.Values, "nodeAffinity"})
		case corev1.NodeSelectorOpExists:
			all = append(all, labelRequirement{e.Key, nil, "nodeAffinity"})
		default: // what a node must not have, it cannot lack
		}
	}
	return all
}

// describeRequirements is all that a pod needs of its node's labels: class=h100, disk=ssd, zone=z1|z2 or !spot.
func describeRequirements(spec corev1.PodSpec) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		parts = append(parts, key+"="+spec.NodeSelector[key])
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return strings.Join(parts, ", ")
	}
	var terms []string
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var all []string
		for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			all = append(all, expression(e))
		}
		terms = append(terms, strings.Join(all, " and "))
	}
	return strings.Join(append(parts, strings.Join(terms, " or ")), ", ")
}

func expression(e corev1.NodeSelectorRequirement) string {
	values := strings.Join(e.Values, "|")
	switch e.Operator {
	case corev1.NodeSelectorOpNotIn:
		return e.Key + "!=" + values
	case corev1.NodeSelectorOpExists:
		return e.Key
	case corev1.NodeSelectorOpDoesNotExist:
		return "!" + e.Key
	case corev1.NodeSelectorOpGt:
		return e.Key + ">" + values
	case corev1.NodeSelectorOpLt:
		return e.Key + "<" + values
	default:
		return e.Key + "=" + values
	}
}

func selectorNoMatch(c *stage.Context, role placement.Role, w labelRequirement) *stage.Finding {
	values, keys := map[string]int{}, map[string]bool{}
	for _, n := range c.View.Cluster().Nodes() {
		if v, ok := n.Labels[w.key]; ok {
			values[v]++
		}
		for key := range n.Labels {
			keys[key] = true
		}
	}
	var have []string
	for _, v := range slices.Sorted(maps.Keys(values)) {
		have = append(have, fmt.Sprintf("%s (%s)", v, phrase.Count(values[v], "node")))
	}
	f := stage.Found(answer.SelectorNoMatch, "no node has the label %s", w).
		Fact("role", phrase.Role(role.Name)).Fact("key", w.key).Fact("values", w.values).Fact("have", values)
	if len(have) == 0 {
		f.Detail("no node has a label %s at all", w.key)
		if nearest := suggest.Nearest(w.key, slices.Sorted(maps.Keys(keys))); nearest != "" {
			f.Detail("did you mean the label %s?", nearest).Fix(otherKey(c, role, w, nearest))
		}
	} else {
		f.Detail("nodes have %s: %s", w.key, phrase.Names(have))
	}
	best := ""
	if len(w.values) > 0 {
		best = suggest.Nearest(w.values[0], slices.Sorted(maps.Keys(values)))
	}
	for _, v := range slices.Sorted(maps.Keys(values)) {
		fix := otherLabel(c, role, w, v)
		if v == best {
			f.Detail("did you mean %s?", v)
			f.Fixes = slices.Insert(f.Fixes, 0, fix)
			continue
		}
		f.Fix(fix)
	}
	return f.Fix(otherLabel(c, role, w, ""))
}

// otherLabel selects another value of a label, or no longer the label if the value is empty.
func otherLabel(c *stage.Context, role placement.Role, w labelRequirement, value string) stage.Fix {
	name := phrase.Role(role.Name)
	text := fmt.Sprintf("require %s=%s", w.key, value)
	if value == "" {
		text = "do not require " + w.String()
	}
	return patch.Job(c.Gang, answer.Relax, text, map[string]any{name + "." + w.field + "." + w.key: value},
		patch.InRole(name, func(spec *corev1.PodSpec) { setRequirement(spec, w, value) }))
}

// otherKey selects the same values of another label.
func otherKey(c *stage.Context, role placement.Role, w labelRequirement, key string) stage.Fix {
	name := phrase.Role(role.Name)
	to := labelRequirement{key, w.values, w.field}
	return patch.Job(c.Gang, answer.Relax, fmt.Sprintf("require %s instead of %s", to, w), map[string]any{name + "." + w.field + "." + w.key: "", name + "." + w.field + "." + key: strings.Join(w.values, "|")},
		patch.InRole(name, func(spec *corev1.PodSpec) {
			if !slices.ContainsFunc(requirements(*spec), w.same) {
				return
			}
			if w.field == "nodeSelector" {
				spec.NodeSelector[key] = spec.NodeSelector[w.key]
				delete(spec.NodeSelector, w.key)
				return
			}
			term := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
			for i := range term.MatchExpressions {
				if term.MatchExpressions[i].Key == w.key {
					term.MatchExpressions[i].Key = key
				}
			}
		}))
}

// setRequirement changes the value of a label that a template requires. Pods may require what their template does not, or no longer.
func setRequirement(spec *corev1.PodSpec, w labelRequirement, value string) {
	if !slices.ContainsFunc(requirements(*spec), w.same) {
		return
	}
	if w.field == "nodeSelector" {
		if value == "" {
			delete(spec.NodeSelector, w.key)
		} else {
			spec.NodeSelector[w.key] = value
		}
		return
	}
	term := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = slices.DeleteFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == w.key && value == "" })
	for i, e := range term.MatchExpressions {
		if e.Key == w.key {
			term.MatchExpressions[i].Operator, term.MatchExpressions[i].Values = corev1.NodeSelectorOpIn, []string{value}
		}
	}
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		spec.Affinity.NodeAffinity = nil
	}
}

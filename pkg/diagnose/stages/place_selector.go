package stages

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// want is one label that a role asks of its nodes.
type want struct {
	key    string
	values []string // any of them; empty: the label must exist
	// field is nodeSelector or nodeAffinity.
	field string
}

func (w want) String() string {
	if len(w.values) == 0 {
		return w.key
	}
	return w.key + "=" + strings.Join(w.values, "|")
}

func (w want) matches(n *corev1.Node) bool {
	value, ok := n.Labels[w.key]
	return ok && (len(w.values) == 0 || slices.Contains(w.values, value))
}

// wants are the labels that every node of a role must carry. Terms of an affinity are alternatives; with more than one,
// none of them alone is a must.
func wants(spec corev1.PodSpec) []want {
	var all []want
	for _, key := range sortedKeys(spec.NodeSelector) {
		all = append(all, want{key, []string{spec.NodeSelector[key]}, "nodeSelector"})
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
			all = append(all, want{e.Key, e.Values, "nodeAffinity"})
		case corev1.NodeSelectorOpExists:
			all = append(all, want{e.Key, nil, "nodeAffinity"})
		default: // what a node must not have, it cannot lack
		}
	}
	return all
}

// selector: some node must carry each label that is asked for, and some node all of them.
func (c *climb) selector(role placement.Role) {
	nodes := c.w.Cluster().Nodes()
	if len(nodes) == 0 {
		return
	}
	all := wants(role.Pod.Spec)
	for _, w := range all {
		if !slices.ContainsFunc(nodes, w.matches) {
			c.add(*c.selectorNoMatch(role, w))
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
	c.add(*found(answer.StagePlacement, answer.SelectorNoMatch, answer.Blocked, answer.User, "no node has all the labels that %s asks for together: %s", phrase.Role(role.Name), asked(role.Pod.Spec)).
		fact("role", phrase.Role(role.Name)))
}

// asked is all that a pod asks of its node's labels: class=h100, disk=ssd, zone=z1|z2 or !spot.
func asked(spec corev1.PodSpec) string {
	var parts []string
	for _, key := range sortedKeys(spec.NodeSelector) {
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

func (c *climb) selectorNoMatch(role placement.Role, w want) *Finding {
	values, keys := map[string]int{}, map[string]bool{}
	for _, n := range c.w.Cluster().Nodes() {
		if v, ok := n.Labels[w.key]; ok {
			values[v]++
		}
		for key := range n.Labels {
			keys[key] = true
		}
	}
	var have []string
	for _, v := range sortedKeys(values) {
		have = append(have, fmt.Sprintf("%s (%s)", v, phrase.Count(values[v], "node")))
	}
	f := found(answer.StagePlacement, answer.SelectorNoMatch, answer.Blocked, answer.User, "no node has the label %s", w).
		fact("role", phrase.Role(role.Name)).fact("key", w.key).fact("values", w.values).fact("have", values)
	if len(have) == 0 {
		f.detail("no node has a label %s at all", w.key)
		if nearest := suggest.Nearest(w.key, sortedKeys(keys)); nearest != "" {
			f.detail("did you mean the label %s?", nearest).fix(c.otherKey(role, w, nearest))
		}
	} else {
		f.detail("nodes have %s: %s", w.key, phrase.Names(have))
	}
	best := ""
	if len(w.values) > 0 {
		best = suggest.Nearest(w.values[0], sortedKeys(values))
	}
	for _, v := range sortedKeys(values) {
		fix := c.otherLabel(role, w, v)
		if v == best {
			f.detail("did you mean %s?", v)
			f.Fixes = slices.Insert(f.Fixes, 0, fix)
			continue
		}
		f.fix(fix)
	}
	return f.fix(c.otherLabel(role, w, ""))
}

// otherLabel asks for another value of a label, or for the label no longer if the value is empty.
func (c *climb) otherLabel(role placement.Role, w want, value string) Fix {
	name := phrase.Role(role.Name)
	text := fmt.Sprintf("ask for %s=%s", w.key, value)
	if value == "" {
		text = "do not ask for " + w.String()
	}
	return c.edited(answer.Relax, text, map[string]any{name + "." + w.field + "." + w.key: value},
		inRole(name, func(spec *corev1.PodSpec) { setWant(spec, w, value) }))
}

// otherKey asks for the same of another label.
func (c *climb) otherKey(role placement.Role, w want, key string) Fix {
	name := phrase.Role(role.Name)
	to := want{key, w.values, w.field}
	return c.edited(answer.Relax, fmt.Sprintf("ask for %s instead of %s", to, w), map[string]any{name + "." + w.field + "." + w.key: "", name + "." + w.field + "." + key: strings.Join(w.values, "|")},
		inRole(name, func(spec *corev1.PodSpec) {
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

func setWant(spec *corev1.PodSpec, w want, value string) {
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

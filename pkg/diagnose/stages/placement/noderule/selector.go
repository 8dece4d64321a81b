// Package noderule finds which rules about nodes keep members off them: the labels that their nodes must have, by whoever put that into the pods, and the taints that they do
// not tolerate.
package noderule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Requirement is one label that the nodes of a role must have.
type Requirement struct {
	Key    string
	Values []string // any of them; empty: the label must exist
	// Field is nodeSelector or nodeAffinity.
	Field string
}

func (w Requirement) String() string {
	if len(w.Values) == 0 {
		return w.Key
	}
	return w.Key + "=" + strings.Join(w.Values, "|")
}

// Same reports whether two requirements are one.
func (w Requirement) Same(other Requirement) bool {
	return w.Key == other.Key && w.Field == other.Field && slices.Equal(w.Values, other.Values)
}

// matchesAny reports whether some node has the label.
func matchesAny(c *stage.Context, w Requirement) bool {
	values := labelled(c, w.Key)
	return slices.ContainsFunc(w.Values, func(v string) bool { return values[v] > 0 }) || len(w.Values) == 0 && len(values) > 0
}

// Selector checks that some node carries each label that is selected, and some node all of them.
func Selector(c *stage.Context, out *stage.Result, role placement.Role) {
	if len(c.Cluster().Nodes()) == 0 {
		return
	}
	all := Requirements(role.Pod.Spec)
	for _, w := range all {
		if !matchesAny(c, w) {
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
	required := DescribeRequirements(role.Pod.Spec)
	f := stage.Found(answer.SelectorNoMatch, "no node has all the labels required for %s together: %s", phrase.Role(role.Name), required)
	if strings.HasPrefix(required, nodeName) && !strings.ContainsAny(required, " ,") {
		f = stage.Found(answer.SelectorNoMatch, "there is no node %s, which %s requires", strings.TrimPrefix(required, nodeName), phrase.Role(role.Name))
	}
	f.Fact("role", phrase.Role(role.Name))
	for _, key := range comparedLabels(role.Pod.Spec) {
		f.Detail("nodes have %s: %s", key, phrase.Names(valueNames(c, key)))
	}
	out.Add(f)
}

// nodeName begins a requirement of a node by its name.
const nodeName = "metadata.name="

// comparedLabels are the labels of nodes that an affinity compares with a number or a list, each once: what nodes have is the other half of why none
// matches.
func comparedLabels(spec corev1.PodSpec) (keys []string) {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if len(e.Values) > 0 && len(keys) < stage.MaxReasons && !slices.Contains(keys, e.Key) {
				keys = append(keys, e.Key)
			}
		}
	}
	return keys
}

// valuesOf counts the nodes by their value of a label; none of one that only the network has, as the kubelet does not know it.
func valuesOf(c *stage.Context, key string) map[string]int {
	if networktopology.Derived(key) {
		return map[string]int{}
	}
	return labelled(c, key)
}

// labelled counts the nodes by their value of a label.
func labelled(c *stage.Context, key string) map[string]int {
	type labelled struct{ key string }
	return view.Once(c.View, labelled{key}, func() map[string]int {
		values := map[string]int{}
		for _, n := range c.Cluster().Nodes() {
			if v, ok := n.Labels[key]; ok {
				values[v]++
			}
		}
		return values
	})
}

// labelsOf are the labels that nodes have, sorted, but for those that only the network has.
func labelsOf(c *stage.Context) []string {
	type labelsOf struct{}
	return view.Once(c.View, labelsOf{}, func() []string {
		keys := map[string]bool{}
		for _, n := range c.Cluster().Nodes() {
			for key := range n.Labels {
				keys[key] = true
			}
		}
		maps.DeleteFunc(keys, func(key string, _ bool) bool { return networktopology.Derived(key) })
		return slices.Sorted(maps.Keys(keys))
	})
}

// valueNames reads like: h100 (2 nodes), a100 (1 node).
func valueNames(c *stage.Context, key string) []string {
	type valueNames struct{ key string }
	return view.Once(c.View, valueNames{key}, func() (names []string) {
		values := valuesOf(c, key)
		for _, v := range slices.Sorted(maps.Keys(values)) {
			names = append(names, fmt.Sprintf("%s (%s)", v, phrase.Count(values[v], "node")))
		}
		return names
	})
}

// Requirements are the labels that every node of a role must carry. Terms of an affinity are alternatives; with more than one,
// none of them alone is a must.
func Requirements(spec corev1.PodSpec) []Requirement {
	var all []Requirement
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		all = append(all, Requirement{key, []string{spec.NodeSelector[key]}, "nodeSelector"})
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
			all = append(all, Requirement{e.Key, e.Values, "nodeAffinity"})
		case corev1.NodeSelectorOpExists:
			all = append(all, Requirement{e.Key, nil, "nodeAffinity"})
		default: // what a node must not have, it cannot lack
		}
	}
	return all
}

// DescribeRequirements is all that a pod needs of its node's labels: class=h100, disk=ssd, zone=z1|z2 or !spot.
func DescribeRequirements(spec corev1.PodSpec) string {
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
			all = append(all, placement.Expression(e))
		}
		terms = append(terms, strings.Join(all, " and "))
	}
	return strings.Join(append(parts, strings.Join(terms, " or ")), ", ")
}

// MaxValues is how many values of one label are offered, each in a command of its own. Nodes may have a label with a value each, such as their name.
const MaxValues = 16

func selectorNoMatch(c *stage.Context, role placement.Role, w Requirement) *stage.Finding {
	values := valuesOf(c, w.Key)
	have := valueNames(c, w.Key)
	same := func(r placement.Role) bool { return slices.ContainsFunc(Requirements(r.Pod.Spec), w.Same) }
	f := stage.Found(answer.SelectorNoMatch, "no node has the label %s%s", w, c.OnlyFor(role, "required for", same)).
		Fact("role", phrase.Role(role.Name)).Fact("key", w.Key).Fact("values", w.Values)
	type someValues struct{ key string }
	f.Fact("have", view.Once(c.View, someValues{w.Key}, func() map[string]int { return someOf(values) }))
	if len(values) > mostHad {
		f.Fact("haveCount", len(values))
	}
	if flavor := flavorOf(c, w); flavor != "" {
		return ofFlavor(c, f, w, flavor, have)
	}
	if isInjected(c, role, w) {
		return ofInjector(c, f, w, have)
	}
	if len(have) == 0 {
		f.Detail("no node has a label %s at all", w.Key)
		if nearest := suggest.Nearest(w.Key, labelsOf(c)); nearest != "" {
			f.Detail("did you mean the label %s?", nearest).Fix(otherKey(c, role, w, nearest))
		}
		poolsGive(c, f)
	} else {
		f.Detail("nodes have %s: %s", w.Key, phrase.Names(have))
	}
	best, platform := "", Platform(w.Key)
	if len(w.Values) > 0 && !(platform && isPlatform(w.Values[0])) {
		best = suggest.Nearest(w.Values[0], slices.Sorted(maps.Keys(values)))
	}
	if best != "" {
		f.Detail("did you mean %s?", best).Fix(otherLabel(c, role, w, best))
	}
	if !platform && len(values) <= MaxValues {
		for _, v := range slices.Sorted(maps.Keys(values)) {
			if v != best {
				f.Fix(otherLabel(c, role, w, v))
			}
		}
	}
	if platform {
		return f
	}
	return f.Fix(otherLabel(c, role, w, ""))
}

// poolsGive adds to a finding that no node has a label which labels the nodes have that Karpenter adds.
func poolsGive(c *stage.Context, f *stage.Finding) {
	for _, pool := range c.View.NodePools()[:min(len(c.View.NodePools()), stage.MaxReasons)] {
		if gives := pool.Gives(); len(gives) > 0 {
			f.Detail("NodePool %s gives its nodes %s", pool.GetName(), phrase.Names(gives))
		}
	}
}

// flavorOf is the ResourceFlavor for which Kueue, and not the author of the job, has its pods require a label; "" for none.
func flavorOf(c *stage.Context, w Requirement) string {
	if w.Field != "nodeSelector" || len(w.Values) != 1 {
		return ""
	}
	return queueing.FlavorOf(c.View, c.Gang, w.Key, w.Values[0])
}

// ofFlavor makes a finding that no node has a label one about the ResourceFlavor that states it: the job is right.
func ofFlavor(c *stage.Context, f *stage.Finding, w Requirement, flavor string, have []string) *stage.Finding {
	f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf(", which ResourceFlavor %s of Kueue has its pods require", flavor)
	if len(have) > 0 {
		f.Detail("nodes have %s: %s", w.Key, phrase.Names(have))
	} else {
		f.Detail("no node has a label %s at all", w.Key)
	}
	return f.Fact("flavor", flavor).Detail("label the nodes of the flavor, or correct its spec.nodeLabels").Run(command.Kubectl("", "describe", "resourceflavor."+kueue.Group, flavor))
}

// mostHad is how many values that a label has are listed for programs: it may have as many as there are nodes.
const mostHad = 100

// someOf are the values that most nodes have, with how many have each.
func someOf(values map[string]int) map[string]int {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b)) })
	some := map[string]int{}
	for _, name := range names[:min(len(names), mostHad)] {
		some[name] = values[name]
	}
	return some
}

// Platform reports whether a label is what an image is built for, its architecture or its operating system: it does not run on nodes with another value.
func Platform(key string) bool {
	switch key {
	case corev1.LabelArchStable, corev1.LabelOSStable, "beta.kubernetes.io/arch", "beta.kubernetes.io/os":
		return true
	}
	return false
}

// isPlatform reports whether a value is one that kubelets give such a label: it is meant as it is.
func isPlatform(value string) bool {
	switch value {
	case "amd64", "arm64", "arm", "386", "ppc64le", "s390x", "riscv64", "linux", "windows":
		return true
	}
	return false
}

// otherLabel selects another value of a label, or no longer the label if the value is empty.
func otherLabel(c *stage.Context, role placement.Role, w Requirement, value string) stage.Fix {
	name := phrase.Role(role.Name)
	text := fmt.Sprintf("require %s=%s", w.Key, value)
	if value == "" {
		text = "do not require " + w.String()
	}
	return patch.Job(c.Gang, answer.Relax, text, map[string]any{name + "." + w.Field + "." + w.Key: value},
		patch.InRole(name, func(spec *corev1.PodSpec) { w.Set(spec, value) }))
}

// otherKey selects the same values of another label.
func otherKey(c *stage.Context, role placement.Role, w Requirement, key string) stage.Fix {
	name := phrase.Role(role.Name)
	to := Requirement{key, w.Values, w.Field}
	return patch.Job(c.Gang, answer.Relax, fmt.Sprintf("require %s instead of %s", to, w), map[string]any{name + "." + w.Field + "." + w.Key: "", name + "." + w.Field + "." + key: strings.Join(w.Values, "|")},
		patch.InRole(name, func(spec *corev1.PodSpec) {
			if !slices.ContainsFunc(Requirements(*spec), w.Same) {
				return
			}
			if w.Field == "nodeSelector" {
				spec.NodeSelector[key] = spec.NodeSelector[w.Key]
				delete(spec.NodeSelector, w.Key)
				return
			}
			term := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
			for i := range term.MatchExpressions {
				if term.MatchExpressions[i].Key == w.Key {
					term.MatchExpressions[i].Key = key
				}
			}
		}))
}

// Set changes the value of the label where a template requires it, or drops it if the value is empty. Pods may require what their template does not,
// or no longer.
func (w Requirement) Set(spec *corev1.PodSpec, value string) {
	if !slices.ContainsFunc(Requirements(*spec), w.Same) {
		return
	}
	if w.Field == "nodeSelector" {
		if value == "" {
			delete(spec.NodeSelector, w.Key)
		} else {
			spec.NodeSelector[w.Key] = value
		}
		return
	}
	term := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = slices.DeleteFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == w.Key && value == "" })
	for i, e := range term.MatchExpressions {
		if e.Key == w.Key {
			term.MatchExpressions[i].Operator, term.MatchExpressions[i].Values = corev1.NodeSelectorOpIn, []string{value}
		}
	}
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		spec.Affinity.NodeAffinity = nil
	}
}

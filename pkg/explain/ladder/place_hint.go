package ladder

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/fit"
)

// tolerationHints adds tolerations that were probably meant for a taint that keeps the role off nodes: a slip in its key or
// value.
func (c *climb) tolerationHints(f *Finding, role fit.Role) *Finding {
	said := map[string]bool{}
	for _, n := range c.w.Cluster().Nodes() {
		for _, taint := range n.Spec.Taints {
			if taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(role.Pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
				continue
			}
			for _, t := range role.Pod.Spec.Tolerations {
				key := near.Nearest(t.Key, []string{taint.Key}) != ""
				value := t.Key == taint.Key && t.Operator != corev1.TolerationOpExists && t.Value != taint.Value
				effect := t.Key == taint.Key && !value && t.Effect != "" && t.Effect != taint.Effect
				text := fmt.Sprintf("toleration %s does not match taint %s of %s", tolerationText(t), taintText(taint), n.Name)
				if (key || value || effect) && !said[taintText(taint)] {
					said[taintText(taint)] = true
					f.detail("%s: was that meant?", text)
				}
			}
		}
	}
	return f
}

// tolerates is the rule of Kubernetes for one toleration and one taint.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return t.Key != "" && t.Value == taint.Value
}

func taintText(t corev1.Taint) string { return keyValue(t.Key, t.Value) + ":" + string(t.Effect) }

func tolerationText(t corev1.Toleration) string {
	text := keyValue(t.Key, t.Value)
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}

func keyValue(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + value
}

// topologyKeys are the labels that a node must have for the role's rules about places to be met there.
func (c *climb) topologyKeys(role fit.Role) []string {
	var keys []string
	if c.Party.TopologyKey != "" {
		keys = append(keys, c.Party.TopologyKey)
	}
	if hasAffinity(role.Pod) {
		for _, term := range role.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			keys = append(keys, term.TopologyKey)
		}
	}
	for _, s := range role.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == corev1.DoNotSchedule {
			keys = append(keys, s.TopologyKey)
		}
	}
	return keys
}

// topology: a rule that members share a place, or are spread over places, needs a label that some node has.
func (c *climb) topology(role fit.Role) {
	labels := map[string]bool{}
	for _, n := range c.w.Cluster().Nodes() {
		for key := range n.Labels {
			labels[key] = true
		}
	}
	for _, key := range c.topologyKeys(role) {
		if labels[key] || len(c.w.Cluster().Nodes()) == 0 {
			continue
		}
		f := found(answer.StagePlacement, answer.SelectorNoMatch, answer.Blocked, answer.User, "no node has the label %s, by which %s asks for its topology", key, roleName(role.Name)).
			fact("role", roleName(role.Name)).fact("key", key)
		if nearest := near.Nearest(key, sortedKeys(labels)); nearest != "" {
			f.detail("did you mean the label %s?", nearest)
		}
		c.add(*f)
		return
	}
}

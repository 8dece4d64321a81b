package stages

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// topologyKeys are the labels that a node must have for the role's rules about places to be met there.
func (c *climb) topologyKeys(role placement.Role) []string {
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
func (c *climb) topology(role placement.Role) {
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
		f := found(answer.StagePlacement, answer.SelectorNoMatch, answer.Blocked, answer.User, "no node has the label %s, by which %s asks for its topology", key, phrase.Role(role.Name)).
			fact("role", phrase.Role(role.Name)).fact("key", key)
		if nearest := suggest.Nearest(key, sortedKeys(labels)); nearest != "" {
			f.detail("did you mean the label %s?", nearest)
			f.fix(c.otherTopology(role, key, nearest))
		}
		c.add(*f.fix(c.otherTopology(role, key, "")))
		return
	}
}

// otherTopology asks for a topology by another label, or no longer if there is none.
func (c *climb) otherTopology(role placement.Role, key, to string) Fix {
	name, change := phrase.Role(role.Name), map[string]any{}
	text := fmt.Sprintf("write %s for %s", to, key)
	if to == "" {
		text = "do without the rule about " + key
	}
	if c.Party.TopologyKey == key {
		return GroupTopology(c.g.Decl, to)
	}
	spec := role.Pod.Spec.DeepCopy()
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		if terms := retopologized(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, key, to); !equality.Semantic.DeepEqual(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) {
			change[name+".podAffinity"] = to
		}
	}
	if slices.ContainsFunc(spec.TopologySpreadConstraints, func(s corev1.TopologySpreadConstraint) bool { return s.TopologyKey == key }) {
		change[name+".topologySpread"] = to
	}
	return c.edited(answer.Relax, text, change, inRole(name, func(spec *corev1.PodSpec) {
		if a := spec.Affinity; a != nil && a.PodAffinity != nil {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = retopologized(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, key, to)
		}
		var kept []corev1.TopologySpreadConstraint
		for _, s := range spec.TopologySpreadConstraints {
			if s.TopologyKey == key {
				if s.TopologyKey = to; to == "" {
					continue
				}
			}
			kept = append(kept, s)
		}
		spec.TopologySpreadConstraints = kept
	}))
}

// retopologized writes another topology key into terms, or leaves those with the key out.
func retopologized(terms []corev1.PodAffinityTerm, key, to string) []corev1.PodAffinityTerm {
	var kept []corev1.PodAffinityTerm
	for _, term := range terms {
		if term.TopologyKey == key {
			if term.TopologyKey = to; to == "" {
				continue
			}
		}
		kept = append(kept, term)
	}
	return kept
}

// GroupTopology asks in the gang object for a topology by another label, or no longer if there is none.
func GroupTopology(d *gang.Declaration, to string) Fix {
	text := "let members be in several values of " + d.TopologyKey
	if to != "" {
		text = fmt.Sprintf("write %s for %s", to, d.TopologyKey)
	}
	a := answer.Action{Kind: answer.Relax, By: answer.User, Text: text, Change: map[string]any{"podGroup.topology": to}}
	path, value := []string{"spec", "topologyConstraint"}, any(map[string]any{"requiredTopologyLevel": to})
	if d.Key.Dialect == gang.Native {
		path, value = []string{"spec", "schedulingConstraints"}, map[string]any{"topology": []any{map[string]any{"key": to}}}
		a.How = "PodGroup " + d.Key.Name + " cannot be changed: delete it and its pods, and make it again without spec.schedulingConstraints"
		if to != "" {
			a.How = "PodGroup " + d.Key.Name + " cannot be changed: delete it and its pods, and make it again with this key in spec.schedulingConstraints.topology"
		}
	} else {
		step := command.Patch{Op: "remove", Path: "/spec/topologyConstraint"}
		if to != "" {
			step = command.Patch{Op: "replace", Path: "/spec/topologyConstraint/requiredTopologyLevel", Value: to}
		}
		a.Command = command.JSONPatch(d.Key.Namespace, "podgroup."+d.Kind.Group, d.Key.Name, step)
	}
	return Fix{Action: a, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
		return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, path...)
			if to != "" {
				whatif.Set(u, value, path...)
			}
		})
	}}
}

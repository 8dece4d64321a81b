package patch

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// GroupTopology names another label for the topology that all members must share, wherever it is stated, or none.
func GroupTopology(g *gang.Gang, to string) stage.Fix {
	d := g.Decl
	text := topologyText(d.Topology.Required, to)
	change := map[string]any{"podGroup.topology": to}
	if d.TopologyFrom == gang.TopologyPods {
		return Job(g, answer.Relax, text, change, podTopology(d, to))
	}
	fix := stage.Fix{Action: answer.Action{Kind: answer.Relax, By: answer.User, Text: text, Change: change}}
	edit := topologyField(d, to)
	switch {
	case d.TopologyFrom == gang.TopologyAnnotation:
		value := any(nil)
		if to != "" {
			value = to
		}
		fix.Command = command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name,
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{gang.TopologyRequired: value}}})
		edit = func(object metav1.Object) {
			object.SetAnnotations(annotated(object.GetAnnotations(), gang.TopologyRequired, to))
		}
	case d.Key.Dialect == gang.Volcano, d.Key.Dialect == gang.Koordinator:
		change := networkTopology(d, to)
		fix.Command = command.MergePatch(d.Key.Namespace, "podgroup."+d.Kind.Group, d.Key.Name, change)
		edit = merged(change)
	case d.Key.Dialect == gang.Native:
		fix.How = "PodGroup " + d.Key.Name + " cannot be changed: delete it and its pods, and make it again without spec.schedulingConstraints"
		if to != "" {
			fix.How = "PodGroup " + d.Key.Name + " cannot be changed: delete it and its pods, and make it again with this key in spec.schedulingConstraints.topology"
		}
	default:
		step := command.Patch{Op: "remove", Path: "/spec/topologyConstraint"}
		if len(d.Topology.Preferred) > 0 || to != "" {
			step.Path += "/requiredTopologyLevel"
		}
		if to != "" {
			step.Op, step.Value = "replace", to
		}
		fix.Command = command.JSONPatch(d.Key.Namespace, "podgroup."+d.Kind.Group, d.Key.Name, step)
	}
	fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot {
		if d.Key.Dialect == gang.PDB {
			return whatif.Budget(s, d, edit)
		}
		return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) { edit(u) })
	}
	return fix
}

// topologyText is what the change from one key to another, or to none, is called.
func topologyText(from, to string) string {
	switch title := networktopology.Title(to); {
	case title != "":
		return "allow a " + title
	case to != "":
		return fmt.Sprintf("write %s for %s", to, from)
	case networktopology.Title(from) != "":
		return "let members be in more than one " + networktopology.Title(from)
	}
	return "let members be in several values of " + from
}

// CanRequire reports whether the topology of a gang, where it is stated, can name a key: a field for tiers or layers takes no label of nodes, and a scheduler that
// is not ours knows no labels but those.
func CanRequire(d *gang.Declaration, key string) bool {
	_, tiered := networktopology.Tier(key)
	_, layered := networktopology.Layer(key)
	_, inLayers := networktopology.Layer(d.Topology.Required)
	switch {
	case d.TopologyFrom == gang.TopologyPods && inLayers && d.Key.Dialect == gang.Koordinator:
		return layered // in its own annotation
	case d.TopologyFrom != gang.TopologyField:
		return true // our annotations
	case d.Key.Dialect == gang.Volcano:
		return tiered
	case d.Key.Dialect == gang.Koordinator:
		return layered
	}
	return !networktopology.Derived(key)
}

// networkTopology is the merge patch that names another key for the topology that a PodGroup of Volcano or Koordinator has in a field of its own, or has
// it be a preference.
func networkTopology(d *gang.Declaration, to string) map[string]any {
	if d.Key.Dialect == gang.Koordinator {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{koordinator.TopologyAnnotation: layers(d, to)}}}
	}
	change := map[string]any{"mode": "soft"}
	if tier, ok := networktopology.Tier(to); ok {
		change = map[string]any{"highestTierAllowed": int64(tier), "highestTierName": nil}
	}
	return map[string]any{"spec": map[string]any{"networkTopology": change}}
}

// layers is Koordinator's annotation with another layer for the one that all members must share, or with that as a preference.
func layers(d *gang.Declaration, to string) string {
	t := gang.Topology{Required: to, Preferred: d.Topology.Preferred, Parts: d.Topology.Parts}
	if to == "" {
		t.Preferred = append(slices.Clone(t.Preferred), d.Topology.Required)
	}
	return koordinator.GatherStrategy(t)
}

// merged edits an object by a merge patch. What cannot be merged stays as it is, and does not help.
func merged(patch map[string]any) func(metav1.Object) {
	return func(object metav1.Object) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		if change, err := resize.Merged(u, patch); err == nil {
			u.Object = change.After.Object
		}
	}
}

// NoTopology takes the annotations by which members share a domain off the pods.
func NoTopology(g *gang.Gang) stage.Fix {
	return Job(g, answer.Relax, "leave the annotations of its topology out", map[string]any{"podGroup.topology": ""}, podTopology(nil, "", gang.TopologyPreferred, gang.TopologyParts, kueue.PreferredTopology, koordinator.TopologyAnnotation))
}

// NoRequiredTopology makes the domain that Kueue has all members share, by annotations of their pods, one that they should.
func NoRequiredTopology(g *gang.Gang, key string) stage.Fix {
	return Job(g, answer.Relax, "have members prefer one "+key+", and not require it ("+kueue.PreferredTopology+")", map[string]any{"podGroup.topology": ""}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			meta := &spec.Roles[i].Template.ObjectMeta
			if value, ok := meta.Annotations[kueue.RequiredTopology]; ok {
				meta.Annotations = annotated(annotated(meta.Annotations, kueue.RequiredTopology, ""), kueue.PreferredTopology, value)
			}
		}
	})
}

// topologyField edits the field of the group object's spec.
func topologyField(d *gang.Declaration, to string) func(metav1.Object) {
	path, value := []string{"spec", "topologyConstraint", "requiredTopologyLevel"}, any(to)
	if d.Key.Dialect == gang.Native {
		path, value = []string{"spec", "schedulingConstraints"}, map[string]any{"topology": []any{map[string]any{"key": to}}}
	}
	return func(object metav1.Object) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		unstructured.RemoveNestedField(u.Object, path...)
		if to != "" {
			whatif.Set(u, value, path...)
		}
	}
}

// podTopology edits the annotations of the pods of all roles: gangctl's own, Kueue's and Koordinator's, and leaves others out.
func podTopology(d *gang.Declaration, to string, without ...string) func(*whatif.Spec) {
	return func(spec *whatif.Spec) {
		for i := range spec.Roles {
			meta := &spec.Roles[i].Template.ObjectMeta
			for _, key := range without {
				if _, ok := meta.Annotations[key]; ok {
					meta.Annotations = annotated(meta.Annotations, key, "")
				}
			}
			for _, key := range []string{gang.TopologyRequired, kueue.RequiredTopology} {
				if _, ok := meta.Annotations[key]; ok {
					meta.Annotations = annotated(meta.Annotations, key, to)
				}
			}
			if _, ok := meta.Annotations[koordinator.TopologyAnnotation]; ok && d != nil && d.Key.Dialect == gang.Koordinator {
				meta.Annotations = annotated(meta.Annotations, koordinator.TopologyAnnotation, layers(d, to))
			}
		}
	}
}

// annotated are annotations with another value, or none if that is empty.
func annotated(annotations map[string]string, key, value string) map[string]string {
	other := map[string]string{}
	for k, v := range annotations {
		if k != key {
			other[k] = v
		}
	}
	if value != "" {
		other[key] = value
	}
	return other
}

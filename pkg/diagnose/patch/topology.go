package patch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// GroupTopology names another label for the topology in the gang object, or none.
func GroupTopology(d *gang.Declaration, to string) stage.Fix {
	text := "let members be in several values of " + d.Topology.Required
	if to != "" {
		text = fmt.Sprintf("write %s for %s", to, d.Topology.Required)
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
	return stage.Fix{Action: a, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
		return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, path...)
			if to != "" {
				whatif.Set(u, value, path...)
			}
		})
	}}
}

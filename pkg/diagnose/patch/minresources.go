package patch

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// LowerMinResources is the fix that lowers a resource in minResources of a group object, which is stated there, to what its members request.
func LowerMinResources(group gang.Declaration, name corev1.ResourceName, need int64) stage.Fix {
	text, path := phrase.Quantity(name, need), []string{"spec", "minResources", string(name)}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("lower %s in minResources of PodGroup %s to %s", name, group.Key.Name, text),
			Change:  map[string]any{"minResources": text, "object": "PodGroup/" + group.Key.Name, "resource": string(name)},
			Command: command.JSONPatch(group.Key.Namespace, "podgroup."+group.Kind.Group, group.Key.Name, command.Patch{Op: "replace", Path: command.Pointer(path), Value: text})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, group.Kind.GroupKind(), group.Key.Namespace, group.Key.Name, func(u *unstructured.Unstructured) { whatif.Set(u, text, path...) })
		},
	}
}

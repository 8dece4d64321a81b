package ladder

import (
	"strings"

	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/gang"
)

// specsField is where a kind keeps its roles.
var specsField = map[string]string{"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}

// PatchRole is the command that changes a role of a job and lets its pods be created again. Paths are relative to the
// replica spec. It is empty for kinds whose template cannot be changed in place.
func PatchRole(s *world.Subject, selector, role string, steps ...command.Patch) string {
	field, known := specsField[s.Kind.Kind]
	if !known {
		return ""
	}
	recreate := false
	for i := range steps {
		recreate = recreate || strings.HasPrefix(steps[i].Path, "/template")
		steps[i].Path = "/spec/" + field + "/" + role + steps[i].Path
	}
	patch := command.JSONPatch(s.Meta.Namespace, strings.ToLower(s.Kind.Kind), s.Meta.Name, steps...)
	if !recreate {
		return patch
	}
	return command.Then(patch, command.Kubectl(s.Meta.Namespace, "delete", "pods", "-l", selector))
}

// PatchMin is the command that changes a gang's minimum wherever it is written: in its object, and in the job for an
// operator that makes the object. It is empty for a gang that has no object: its minimum is written on every pod.
func PatchMin(g *world.Gang, n int32) string {
	d := g.Decl
	if d == nil || d.Kind.Kind == "" {
		return ""
	}
	object := map[string]any{"spec": map[string]any{"minMember": n}}
	if d.Key.Dialect == gang.Native {
		object = map[string]any{"spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": n}}}}
	}
	group := command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name, object)
	if g.MinMember == nil {
		return group
	}
	policy := map[string]any{"spec": map[string]any{"runPolicy": map[string]any{"schedulingPolicy": map[string]any{"minAvailable": n}}}}
	return command.Then(command.MergePatch(g.Meta.Namespace, strings.ToLower(g.Kind.Kind), g.Meta.Name, policy), group)
}

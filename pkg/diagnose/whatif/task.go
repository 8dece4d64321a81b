package whatif

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// taskSteps are what an edit changes of a Job of Volcano that is there, where its webhook lets that change: how many pods its tasks have, and its minimum, which the controller writes
// into the PodGroup. They are nil for any other job, and any other edit, and once members have been placed: those would stay where they are, and it is not known whether the others
// find places beside them.
func taskSteps(g *gang.Gang, spec *Spec, roles []command.RolePatch) (steps []command.Patch) {
	placed := g.Count(gang.Starting, gang.Running, gang.Terminating, gang.Lost, gang.Failed) > 0
	if g.Kind.GroupKind() != volcanojob.GroupKind() || g.Object == nil || placed {
		return nil
	}
	for _, r := range roles {
		at := volcanojob.TaskAt(g.Object, r.Role)
		if at < 0 || slices.ContainsFunc(r.Steps, func(step command.Patch) bool { return step.Path != "/replicas" }) {
			return nil
		}
		path := fmt.Sprintf("/spec/tasks/%d", at)
		task := volcanojob.Tasks(g.Object)[at]
		if name, _, _ := unstructured.NestedString(task, "name"); name != "" {
			steps = append(steps, command.Patch{Op: "test", Path: path + "/name", Value: name})
		}
		n := spec.Role(r.Role).Replicas
		steps = append(steps, command.Patch{Op: "add", Path: path + "/replicas", Value: n})
		if least, ok, _ := unstructured.NestedInt64(task, "minAvailable"); ok && least > int64(n) { // which the webhook does not accept
			steps = append(steps, command.Patch{Op: "add", Path: path + "/minAvailable", Value: n})
		}
	}
	if g.MinMember != nil && *g.MinMember != spec.Min {
		steps = append(steps, command.Patch{Op: "add", Path: "/spec/minAvailable", Value: spec.Min})
	}
	return steps
}

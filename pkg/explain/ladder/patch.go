package ladder

import (
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
)

// PatchRole is the command that changes a role of a job and lets its pods be created again. Paths are relative to the
// replica spec. It is empty for kinds whose fields are not known.
func PatchRole(s *world.Subject, selector, role string, steps ...command.Patch) string {
	job := command.Job{Kind: s.Kind, Namespace: s.Meta.Namespace, Name: s.Meta.Name, Pods: selector}
	if len(s.Roles) == 1 {
		job.Template = &s.Roles[0].Template
	}
	commands, _ := command.Change(job, []command.RolePatch{{Role: role, Steps: steps}})
	return commands
}

// PatchMin is the command that changes a gang's minimum wherever it is written: in its object, in the job for an operator
// that makes the object, or on every pod.
func PatchMin(g *world.Gang, n int32) string {
	commands, _ := whatif.Commands(g, func(spec *whatif.Spec) { spec.Min = n })
	return commands
}

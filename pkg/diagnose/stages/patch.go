package stages

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// PatchMin is the command that changes a gang's minimum wherever it is written: in its object, in the job for an operator
// that makes the object, or on every pod.
func PatchMin(g *gang.Gang, n int32) string {
	commands, _ := whatif.Commands(g, func(spec *whatif.Spec) { spec.Min = n })
	return commands
}

// edited is a fix that changes the job, where it is written: templates are not applied to pods that exist, so its pods are
// made again.
func (c *climb) edited(kind answer.ActionKind, text string, change map[string]any, edit func(*whatif.Spec)) Fix {
	commands, how := whatif.Commands(c.g, edit)
	return Fix{
		Action: answer.Action{Kind: kind, By: answer.User, Text: text, Change: change, Command: commands, How: how},
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resubmit(s, c.g, edit) },
	}
}

// inRole restricts an edit to the pod template of one role.
func inRole(name string, edit func(*corev1.PodSpec)) func(*whatif.Spec) {
	return func(spec *whatif.Spec) {
		if role := spec.Role(name); role != nil {
			edit(&role.Template.Spec)
		}
	}
}

// Package patch makes the fixes that edit what the user wrote: a job, its pod templates, its gang object.
package patch

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// MinMember is the command that changes a gang's minimum wherever it is written: in its object, in the job for an operator
// that makes the object, or on every pod.
func MinMember(g *gang.Gang, n int32) string {
	commands, _ := whatif.Commands(g, func(spec *whatif.Spec) { spec.Min = n })
	return commands
}

// InRole restricts an edit to the pod template of one role.
func InRole(name string, edit func(*corev1.PodSpec)) func(*whatif.Spec) {
	return func(spec *whatif.Spec) {
		if role := spec.Role(name); role != nil {
			edit(&role.Template.Spec)
		}
	}
}

// Key is the stable key for the request of a container: Worker.cpu, Worker.gpu, and Worker.sidecar.gpu for another
// container than the main one.
func Key(role gang.Role, container string, name corev1.ResourceName) string {
	key := role.Name + "."
	if container != role.Main {
		key += container + "."
	}
	if name == podrequest.Device(podrequest.Of(&corev1.Pod{Spec: role.Template.Spec})) || podrequest.IsGPU(name) {
		return key + "gpu"
	}
	return key + string(name)
}

// Lower sets the request of a container, and its limit as [podrequest.Set] has it.
func Lower(role *gang.Role, container string, name corev1.ResourceName, to resource.Quantity) {
	if r := Resources(&role.Template.Spec, container); r != nil {
		podrequest.Set(r, name, to)
	}
}

// Resources are those of the container, or the init container, of a name; nil without.
func Resources(spec *corev1.PodSpec, container string) *corev1.ResourceRequirements {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == container {
				return &list[i].Resources
			}
		}
	}
	return nil
}

// Job is a fix that changes the job, where it is written: templates are not applied to pods that exist, so its pods are
// made again.
func Job(g *gang.Gang, kind answer.ActionKind, text string, change map[string]any, edit func(*whatif.Spec)) stage.Fix {
	return stage.Fix{
		Action: Commanded(answer.Action{Kind: kind, By: answer.User, Text: text, Change: change}, g, edit),
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resubmit(s, g, edit) },
		Edit:   edit,
	}
}

// Commanded is an action with the commands that make an edit of a job: those of kubectl, and that of gangctl where its flags can.
func Commanded(a answer.Action, g *gang.Gang, edit func(*whatif.Spec)) answer.Action {
	a.Command, a.How = whatif.Commands(g, edit)
	args := resize.ArgsOf(g, edit)
	if _, known := kind.ByKind(g.Kind.GroupKind()); args == nil || !known && g.Object != nil { // which no command of gangctl finds
		return a
	}
	a.Resize = resize.Line(g.Job, args)
	if a.Command == "" { // this line is how
		a.How = ""
	}
	if resize.Masters(g.Job) > 0 && slices.Contains(args, "--workers") && a.How == "" {
		a.How = "the master counts as one of --workers"
	}
	return a
}

// Labelled is a fix that gives a label of the job a value, which changes what is called by a key.
func Labelled(g *gang.Gang, label, value, key, text string) stage.Fix {
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: text, Change: map[string]any{key: value},
			Command: command.Kubectl(g.Meta.Namespace, "label", "--overwrite", g.Ref(), label+"="+value)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Relabelled(s, g.Job, label, value) },
	}
}

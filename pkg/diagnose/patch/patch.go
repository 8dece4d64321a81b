// Package patch makes the fixes that edit what the user wrote: a job, its pod templates, its gang object.
package patch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
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

// Lower sets the request of a container, and its limit where it has one that is not above it.
func Lower(role *gang.Role, container string, name corev1.ResourceName, to resource.Quantity) {
	r := Resources(&role.Template.Spec, container)
	if r == nil {
		return
	}
	limit, limited := r.Limits[name]
	request, requested := r.Requests[name]
	if !requested {
		request = limit
	}
	SetAmount(&r.Requests, name, to)
	if limited && limit.Cmp(request) <= 0 || podrequest.IsGPU(name) && limited {
		r.Limits[name] = to
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

// SetAmount sets the amount of a resource in a list, which may be nil.
func SetAmount(list *corev1.ResourceList, name corev1.ResourceName, to resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = to
}

// Job is a fix that changes the job, where it is written: templates are not applied to pods that exist, so its pods are
// made again.
func Job(g *gang.Gang, kind answer.ActionKind, text string, change map[string]any, edit func(*whatif.Spec)) stage.Fix {
	commands, how := whatif.Commands(g, edit)
	return stage.Fix{
		Action: answer.Action{Kind: kind, By: answer.User, Text: text, Change: change, Command: commands, How: how},
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resubmit(s, g, edit) },
	}
}

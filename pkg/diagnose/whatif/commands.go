package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Commands do in the real cluster what Resubmit does in a snapshot. Where no command can, how describes who has to do
// what, and commands is empty.
func Commands(g *gang.Gang, edit func(*Spec)) (commands, how string) {
	if g.Maker != nil {
		return "", withGroup(fmt.Sprintf("change it in %s %s/%s, which makes these pods", g.Maker.Kind.Kind, g.Meta.Namespace, g.Maker.Name), g, edit)
	}
	if len(g.Parts) > 0 {
		return "", "change it in the jobs that make its members, which start together"
	}
	if g.Bare != nil {
		return "", withGroup("no job owns these pods: whoever made them has to make them again like that", g, edit)
	}
	if maker := maker(g); maker != "" {
		return "", fmt.Sprintf("change it in %s, which made %s %s and would make it again as it was", maker, titleOf(g), g.Meta.Name)
	}
	if _, known := kind.ByKind(g.Kind.GroupKind()); !known {
		return "", fmt.Sprintf("submit %s %s again with this change", titleOf(g), g.Meta.Name)
	}
	spec := Revise(g, edit)
	roles, further, err := Steps(g, spec)
	if err != nil {
		return "", "submit it again with this change"
	}
	job := command.Target{Kind: g.Kind, Namespace: g.Meta.Namespace, Name: g.Meta.Name}
	if _, managed := kueue.QueueOf(&g.Meta); !managed { // Kueue takes a job that has changed back by itself
		job.Pods, job.Unsuspendable = Selector(g), !Suspends(g.Job, g.ExistingPods())
	}
	if len(g.Roles) == 1 {
		job.Template = &g.Roles[0].Template
	}
	if command.Replaces(g.Kind, roles) && g.Meta.Annotations[provenance.CommandAnnotation] != "" {
		return "", fmt.Sprintf("submit %s %s again with this change: kubectl would delete it, and its PodGroup and all else that submit made for it with it", titleOf(g), g.Meta.Name)
	}
	if steps := taskSteps(g, spec, roles); steps != nil {
		return command.JSONPatch(g.Meta.Namespace, strings.ToLower(g.Kind.GroupKind().String()), g.Meta.Name, steps...), ""
	}
	change, ok := command.Change(job, roles, further...)
	if !ok {
		return "", fmt.Sprintf("submit %s %s again with this change", titleOf(g), g.Meta.Name)
	}
	return command.Then(groupCommand(g, spec), change), ""
}

// titleOf is what people call the kind of a job: two kinds are called Job by their API.
func titleOf(g *gang.Gang) string { return cmp.Or(g.Reader.Called, g.Kind.Kind) }

// withGroup is how pods are changed, with what the same edit changes of what declares their gang: by a command, where that is an object.
func withGroup(how string, g *gang.Gang, edit func(*Spec)) string {
	spec := Revise(g, edit)
	if group := groupCommand(g, spec); group != "" {
		return how + ", and " + group
	}
	if d := g.Decl; d != nil && d.Kind.Kind == "" && spec.Min != d.MinMember {
		return fmt.Sprintf("%s, with a minimum of %d", how, spec.Min)
	}
	return how
}

// Steps are what an edit changes of the job itself: in its roles, and in further fields.
func Steps(g *gang.Gang, spec *Spec) (roles []command.RolePatch, further []command.Patch, err error) {
	for i, before := range g.Roles {
		after := spec.Roles[i]
		r := command.RolePatch{Role: before.Name}
		if role := furtherOf(g, after); role != nil {
			roles = append(roles, command.RolePatch{Role: before.Name, Steps: []command.Patch{{Op: "add", Value: role}}})
			continue
		}
		if after.Replicas == 0 && before.Replicas > 0 && g.Reader.OmitsEmpty {
			roles = append(roles, command.RolePatch{Role: before.Name, Steps: []command.Patch{{Op: "remove"}}})
			continue
		}
		if after.Replicas != before.Replicas {
			r.Steps = replicaSteps(g, after.Replicas)
		}
		template, err := command.Diff("/template", before.Template, after.Template)
		if err != nil {
			return nil, nil, err
		}
		if r.Steps = append(r.Steps, template...); len(r.Steps) > 0 {
			roles = append(roles, r)
		}
	}
	further = addSteps(g.Object, policyFields(g.Object, g, spec))
	if queue := newQueue(g, spec); queue != "" {
		further = append(further, command.Patch{Op: "add", Path: command.Pointer([]string{"metadata", "labels", kueue.QueueLabel}), Value: queue})
	}
	return roles, slices.Concat(further, partialSteps(g, spec), processes(g, spec)), nil
}

// addSteps add fields that are in one object. What that is in is added first, where it is not there.
func addSteps(u *unstructured.Unstructured, fields []field) []command.Patch {
	var steps []command.Patch
	for i, f := range fields {
		if i > 0 {
			steps = append(steps, command.Patch{Op: "add", Path: command.Pointer(f.path), Value: f.value})
			continue
		}
		for n := 1; n < len(f.path); n++ {
			if _, there, _ := unstructured.NestedFieldNoCopy(u.Object, f.path[:n]...); !there {
				steps = append(steps, command.Patch{Op: "add", Path: command.Pointer(f.path[:n]), Value: map[string]any{}})
			}
		}
		steps = append(steps, command.Patch{Op: "add", Path: command.Pointer(f.path), Value: f.value})
	}
	return steps
}

// perMember is the field for how many processes a member starts, which is one a device where it is set.
var perMember = map[string]string{"MPIJob": "slotsPerWorker", "PyTorchJob": "nprocPerNode"}

// processes keeps the number of processes at that of the devices, for members that are to have other ones.
func processes(g *gang.Gang, spec *Spec) []command.Patch {
	u, name := g.Object, perMember[g.Kind.Kind]
	if u == nil || name == "" {
		return nil
	}
	had, there, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", name)
	if !there {
		return nil
	}
	for i, before := range g.Roles {
		was, is := Devices(before), Devices(spec.Roles[i])
		if was == is || fmt.Sprint(had) != fmt.Sprint(was) {
			continue
		}
		value := any(is)
		if _, text := had.(string); text {
			value = fmt.Sprint(is)
		}
		return []command.Patch{{Op: "replace", Path: "/spec/" + name, Value: value}}
	}
	return nil
}

// Devices is how many devices the container that does the work of a role requests: what --gpus counts, and programs are configured with. Those of
// other containers are none of its.
func Devices(r gang.Role) int64 {
	i := r.MainContainer()
	if i < 0 {
		return 0
	}
	return request.Devices(request.OfContainer(r.Template.Spec.Containers[i].Resources))
}

// maker is what made the job, if something did that keeps it as it is. A CronJob leaves its Jobs alone.
func maker(g *gang.Gang) string {
	ref := metav1.GetControllerOf(&g.Meta)
	if ref == nil || ref.Kind == "CronJob" {
		return ""
	}
	return ref.Kind + " " + g.Meta.Namespace + "/" + ref.Name
}

func replicaSteps(g *gang.Gang, n int32) []command.Patch {
	if j := g.BatchJob; j != nil {
		parallelism, completions := batchCounts(j, n)
		steps := []command.Patch{{Op: "add", Path: "/parallelism", Value: parallelism}}
		if completions != nil && *completions != *j.Spec.Completions {
			steps = append(steps, command.Patch{Op: "add", Path: "/completions", Value: *completions})
		}
		return steps
	}
	return []command.Patch{{Op: "add", Path: "/replicas", Value: n}}
}

// Selector selects the pods that a gang has; empty if none has a label to be selected by.
func Selector(g *gang.Gang) string {
	pods := g.ExistingPods()
	if _, found := g.NameLabel(pods); !found {
		return ""
	}
	return g.PodSelector(pods)
}

// Suspends reports whether the operator of a job supports suspend. One that does not drops the field silently;
// without a field on the job, the annotations of its pods count: these are of Training Operators before 1.6.
func Suspends(job *gang.Job, pods []*corev1.Pod) bool {
	return !job.Unsuspendable && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return p.Labels["group-name"] == "kubeflow.org" || p.Labels["group_name"] == "kubeflow.org" || p.Labels["tf_job_name"] != ""
	})
}

// groupCommand changes the gang object, if its fields differ for the new members.
func groupCommand(g *gang.Gang, spec *Spec) string {
	patch := GroupPatch(g, spec)
	if patch == nil {
		return ""
	}
	d := g.Decl
	return command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name, patch)
}

// GroupPatch is a merge patch of the gang object for an edit; nil where its fields stay, or there is none.
func GroupPatch(g *gang.Gang, spec *Spec) map[string]any {
	d := g.Decl
	if d == nil || d.Kind.Kind == "" {
		return nil
	}
	fields := changedFields(g, spec)
	for _, f := range fields {
		if needs, ok := f.value.(map[string]any); ok && f.path[1] == "minResources" {
			dropOthers(needs, d.MinResources)
		}
	}
	return mergePatch(fields)
}

// dropOthers has a merge patch drop the resources that are not needed any more: it keeps what it does not set to null.
func dropOthers(needs map[string]any, had corev1.ResourceList) {
	for name := range had {
		if _, still := needs[string(name)]; !still {
			needs[string(name)] = nil
		}
	}
}

// mergePatch is a merge patch that sets fields; nil without any.
func mergePatch(fields []field) map[string]any {
	if len(fields) == 0 {
		return nil
	}
	patch := map[string]any{}
	for _, f := range fields {
		if err := unstructured.SetNestedField(patch, f.value, f.path...); err != nil {
			panic(fmt.Sprintf("set %v: %v", f.path, err)) // the paths are ours, and none leads through another
		}
	}
	return patch
}

package command

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Target is the job that commands change.
type Target struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Pods selects its pods by label; empty if it has none, so that none need to be made again.
	Pods string
	// Unsuspendable reports that its operator does not know how to suspend it.
	Unsuspendable bool
	// Template is the pod template of a batch Job as the API server has it.
	Template *corev1.PodTemplateSpec
}

// RolePatch changes one role. Paths are relative to the replica spec of the role: /replicas, /template/…; those of a batch
// Job are /parallelism, /completions, /template/….
type RolePatch struct {
	Role  string
	Steps []Patch
}

// Change is the commands that change a job, and let its pods be made again where they would not follow the change by
// themselves. further are steps elsewhere in the object. ok is false for a kind whose fields are not known.
func Change(j Target, roles []RolePatch, further ...Patch) (commands string, ok bool) {
	if IsBatch(j.Kind) {
		return changeBatch(j, roles, further), true
	}
	steps, known := Steps(j.Kind, roles, further...)
	if !known {
		return "", false
	}
	if len(steps) == 0 {
		return "", true
	}
	kind := strings.ToLower(j.Kind.Kind)
	if j.Pods == "" || !Remakes(j.Kind, roles) {
		return JSONPatch(j.Namespace, kind, j.Name, steps...), true
	}
	if j.Unsuspendable {
		return Then(JSONPatch(j.Namespace, kind, j.Name, steps...), Kubectl(j.Namespace, "delete", "pods", "-l", j.Pods)), true
	}
	suspend := func(yes bool) string {
		return MergePatch(j.Namespace, kind, j.Name, map[string]any{"spec": map[string]any{"runPolicy": map[string]any{"suspend": yes}}})
	}
	all := []string{
		suspend(true),
		Kubectl(j.Namespace, "wait", "--for=delete", "pods", "-l", j.Pods, "--timeout=5m"),
	}
	if j.Kind.Kind == "MPIJob" && j.Kind.Version == "v2beta1" && slices.ContainsFunc(roles, ChangesLauncher) {
		// The MPI Operator's launcher is a batch Job. It makes it again at once, of what the job is then.
		return Then(append(all, JSONPatch(j.Namespace, kind, j.Name, steps...), Kubectl(j.Namespace, "delete", "job", j.Name+"-launcher"), suspend(false))...), true
	}
	steps = append(steps, Patch{Op: "add", Path: "/spec/runPolicy/suspend", Value: false})
	return Then(append(all, JSONPatch(j.Namespace, kind, j.Name, steps...))...), true
}

// IsBatch reports whether a kind is the Job of Kubernetes itself.
func IsBatch(kind schema.GroupVersionKind) bool {
	return kind.GroupKind() == batchjob.GroupKind()
}

// Steps are the changes of roles, and further ones, as one JSON patch of the job. ok is false for a kind whose fields are not known.
func Steps(kind schema.GroupVersionKind, roles []RolePatch, further ...Patch) (steps []Patch, ok bool) {
	at := func(string) string { return "/spec" }
	if !IsBatch(kind) {
		reader, known := jobkinds.ByKind(kind.GroupKind())
		if !known || reader.WriteRoles != nil || kind.Version == "v1alpha1" { // which had a list
			return nil, false
		}
		at = func(role string) string { // what has the template
			path := reader.Template(role)
			return Pointer(path[:len(path)-1])
		}
	}
	steps = slices.Clone(further)
	for _, r := range roles {
		for _, step := range r.Steps {
			step.Path = at(r.Role) + step.Path
			steps = append(steps, step)
		}
	}
	return steps, true
}

// Remakes reports whether pods of a job that has some have to be made again: they know their template and, of TensorFlow and PyTorch,
// how many members there are, from the moment in which they are made. The operator deletes them while the job is suspended. Who
// deletes them by hand may find that some have started meanwhile, and that the job has ended by it.
func Remakes(kind schema.GroupVersionKind, roles []RolePatch) bool {
	followed := kind.Kind == "MPIJob" || IsBatch(kind) // members are in a file that follows, or do not know of each other
	for _, r := range roles {
		for _, step := range r.Steps {
			if strings.HasPrefix(step.Path, "/template") || !followed {
				return true
			}
		}
	}
	return false
}

// ChangesLauncher reports whether the pods of the launcher change, which the MPI Operator runs as a batch Job of their own.
func ChangesLauncher(r RolePatch) bool {
	return strings.EqualFold(r.Role, "launcher") && slices.ContainsFunc(r.Steps, func(step Patch) bool { return strings.HasPrefix(step.Path, "/template") })
}

// changeBatch patches what can be patched; the template of a Job is immutable once it has started, so that a Job with
// another one has to take its place.
func changeBatch(j Target, roles []RolePatch, further []Patch) string {
	steps, _ := Steps(j.Kind, roles, further...)
	switch {
	case len(steps) == 0:
		return ""
	case !changesTemplate(steps):
		return JSONPatch(j.Namespace, "job", j.Name, steps...)
	}
	return Recreate(j.Namespace, "job", j.Name, append(generated(j.Template), steps...)...)
}

// Replaces reports whether a job has to be deleted and made again for changes of roles: a Job of Kubernetes with another template. What it owns goes
// with it.
func Replaces(kind schema.GroupVersionKind, roles []RolePatch) bool {
	steps, _ := Steps(kind, roles)
	return IsBatch(kind) && changesTemplate(steps)
}

func changesTemplate(steps []Patch) bool {
	return slices.ContainsFunc(steps, func(step Patch) bool { return strings.HasPrefix(step.Path, "/spec/template") })
}

// generated removes what the API server adds to a Job and refuses in a new one. A Job with a selector of its own has none of
// it.
func generated(template *corev1.PodTemplateSpec) []Patch {
	if template == nil {
		return nil
	}
	var steps []Patch
	for _, label := range []string{batchv1.ControllerUidLabel, "controller-uid"} {
		if _, ok := template.Labels[label]; ok {
			steps = append(steps, Patch{Op: "remove", Path: "/spec/template/metadata/labels/" + escape(label)})
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return append([]Patch{{Op: "remove", Path: "/spec/selector"}}, steps...)
}

// Recreate replaces an object by a changed copy: it is deleted and created, for fields that cannot be patched.
func Recreate(namespace, resource, name string, steps ...Patch) string {
	return Pipe(
		Kubectl(namespace, "get", resource, name, "-o", "json"),
		Kubectl("", "patch", "--local", "-f", "-", "--type=json", "-p", encode(steps), "-o", "json"),
		Kubectl(namespace, "replace", "--force", "-f", "-"),
	)
}

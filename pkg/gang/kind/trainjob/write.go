package trainjob

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
)

// writeRoles writes the number of nodes of a TrainJob, and what each requests. A TrainJob has no other fields of its members: the rest is
// its runtime's.
func writeRoles(u *unstructured.Unstructured, roles []gang.Role) {
	for _, role := range roles {
		i := role.MainContainer()
		if role.Name != node || i < 0 {
			continue
		}
		set := func(value any, field string) {
			_ = unstructured.SetNestedField(u.Object, value, "spec", "trainer", field) // it was decoded: every field above is a map or absent
		}
		set(int64(role.Replicas), "numNodes")
		resources := role.Template.Spec.Containers[i].Resources
		if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&resources); err == nil && len(content) > 0 {
			set(content, "resourcesPerNode")
		}
	}
}

// Unwritten is what of a change of roles a TrainJob has no field for; "" if it has one for all of it.
func Unwritten(before, after []gang.Role) string {
	for i, was := range before {
		is := after[i]
		switch {
		case was.Name == node && is.Replicas != was.Replicas && len(before) > 1:
			return "other members than its nodes count among numNodes in some runtimes: submit it again with another number"
		case was.Name == node && drops(was, is):
			return "what its runtime requests for a node can be changed, and not dropped: change the runtime, or submit it again with another"
		}
		is.Template = *is.Template.DeepCopy()
		if j := is.MainContainer(); was.Name == node && j >= 0 && was.MainContainer() == j {
			is.Replicas = was.Replicas
			is.Template.Spec.Containers[j].Resources = resourcesOf(was, j)
		}
		if is.Replicas != was.Replicas || !equality.Semantic.DeepEqual(is.Template, was.Template) {
			return fmt.Sprintf("a TrainJob has how many nodes there are and what they request, and the rest of its %s is its runtime's: change that, or submit it again", strings.ToLower(was.Name))
		}
	}
	return ""
}

// drops reports whether a role requests a resource no more. What a TrainJob requests is merged into what its runtime does.
func drops(before, after gang.Role) bool {
	i, j := before.MainContainer(), after.MainContainer()
	if i < 0 || j < 0 {
		return false
	}
	was, is := resourcesOf(before, i), resourcesOf(after, j)
	for _, list := range [][2]corev1.ResourceList{{was.Requests, is.Requests}, {was.Limits, is.Limits}} {
		for name := range list[0] {
			if _, still := list[1][name]; !still {
				return true
			}
		}
	}
	return false
}

func resourcesOf(role gang.Role, container int) corev1.ResourceRequirements {
	return role.Template.Spec.Containers[container].Resources
}

// Needs reports whether an object that a TrainJob owns has to be there before the TrainJob is: its runtime.
func Needs(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == Group && slices.Contains([]string{RuntimeKind, ClusterRuntimeKind}, object.GetKind())
}

// Unseen reports whether a TrainJob was refused because of its runtime, as the webhooks of Trainer ("specified trainingRuntime must be created
// before the TrainJob is created") and of Kueue ("runtime 'llama' not found") do while they have not seen it.
func Unseen(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)) && strings.Contains(strings.ToLower(err.Error()), "runtime")
}

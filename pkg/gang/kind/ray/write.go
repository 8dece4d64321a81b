package ray

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
)

// writeRoles writes roles into the spec at a path. A group whose replicas have several hosts takes the number of members that so many
// replicas have; a number that is none of these is left out.
func writeRoles(path ...string) func(u *unstructured.Unstructured, roles []gang.Role) {
	return func(u *unstructured.Unstructured, roles []gang.Role) {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		spec, ok := value.(map[string]any)
		if !ok {
			return
		}
		groups, _ := spec["workerGroupSpecs"].([]any)
		for _, role := range roles {
			if role.Name == Head {
				if head, ok := spec["headGroupSpec"].(map[string]any); ok {
					writeTemplate(head, withoutAutoscaler(role.Template, head))
				}
				continue
			}
			for _, each := range groups {
				if group, ok := each.(map[string]any); ok && group["groupName"] == role.Name {
					writeGroup(group, role)
				}
			}
		}
	}
}

func writeGroup(group map[string]any, role gang.Role) {
	var g workerGroup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(group, &g); err != nil {
		return
	}
	hosts := max(g.NumOfHosts, 1)
	if n := role.Replicas / hosts; role.Replicas%hosts == 0 {
		group["replicas"] = int64(n)
		if g.MinReplicas != nil && *g.MinReplicas > n {
			group["minReplicas"] = int64(n)
		}
		if g.MaxReplicas != nil && *g.MaxReplicas < n {
			group["maxReplicas"] = int64(n)
		}
	}
	writeTemplate(group, role.Template)
}

func writeTemplate(group map[string]any, pods corev1.PodTemplateSpec) {
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pods); err == nil {
		group["template"] = content
	}
}

// withoutAutoscaler takes out the container that the operator adds, unless it stands in the object.
func withoutAutoscaler(pods corev1.PodTemplateSpec, head map[string]any) corev1.PodTemplateSpec {
	var written headGroupSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(head, &written); err != nil {
		return pods
	}
	if n := len(pods.Spec.Containers); n == len(written.Template.Spec.Containers)+1 && pods.Spec.Containers[n-1].Name == autoscaler {
		pods.Spec.Containers = slices.Clone(pods.Spec.Containers[:n-1])
	}
	return pods
}

package jobset

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
)

// writeRoles writes roles into a JobSet. A role that is to have other members than it has gets more or fewer Jobs, or Jobs of another size
// if it has one; a number that is neither is left out.
func writeRoles(u *unstructured.Unstructured, roles []gang.Role) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicatedJobs")
	items, _ := list.([]any)
	for _, each := range items {
		item, ok := each.(map[string]any)
		if !ok {
			continue
		}
		for _, role := range roles {
			if item["name"] == role.Name {
				writeRole(item, role)
			}
		}
	}
}

func writeRole(item map[string]any, role gang.Role) {
	var r replicatedJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item, &r); err != nil {
		return
	}
	jobs, size, n := ptr.Deref(r.Replicas, 1), r.size(), role.Replicas
	switch {
	case jobs == 1 && n > 0:
		jobs, size = 1, n
	case size > 0 && n%size == 0:
		jobs = n / size
	}
	set := func(value any, path ...string) {
		_ = unstructured.SetNestedField(item, value, path...) // it was decoded: every field above is a map or absent
	}
	set(int64(jobs), "replicas")
	if size != r.size() {
		was, work := ptr.Deref(r.Template.Spec.Parallelism, 1), r.Template.Spec.Completions
		set(int64(size), "template", "spec", "parallelism")
		if work != nil && (*work == was || *work < size) { // how much there is to do stays, unless each pod has a place of its own
			set(int64(size), "template", "spec", "completions")
		}
	}
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&role.Template); err == nil {
		set(content, "template", "spec", "template")
	}
}

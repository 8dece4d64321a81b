package feed

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// established reports whether a definition's names are accepted and served.
func established(obj any) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GetDeletionTimestamp() != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Established" {
			return condition["status"] == "True"
		}
	}
	return false
}

// onlyFields keeps of an object its identity and the named top-level fields,
// so that a cache holds nothing that nobody reads.
func onlyFields(keep ...string) cache.TransformFunc {
	keep = append([]string{"apiVersion", "kind", "metadata"}, keep...)
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		u.SetManagedFields(nil)
		for field := range u.Object {
			if !slices.Contains(keep, field) {
				delete(u.Object, field)
			}
		}
		return u, nil
	}
}

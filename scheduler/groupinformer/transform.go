package groupinformer

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// onlyFields keeps of an object its identity and the named top-level fields,
// so that a cache holds no field that is not read.
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

// onlyServed keeps the versions of a definition of custom resources, and the name of
// any other definition. The schema is the bulk of a definition.
func onlyServed(custom map[string]schema.GroupResource) cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		if _, ok := custom[u.GetName()]; !ok {
			bare := &unstructured.Unstructured{}
			bare.SetGroupVersionKind(u.GroupVersionKind())
			bare.SetName(u.GetName())
			bare.SetUID(u.GetUID())
			bare.SetResourceVersion(u.GetResourceVersion())
			return bare, nil
		}
		field, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
		versions, _ := field.([]any)
		for _, v := range versions {
			if v, ok := v.(map[string]any); ok {
				for field := range v {
					if field != "name" && field != "served" && field != "storage" {
						delete(v, field)
					}
				}
			}
		}
		u.Object["spec"] = map[string]any{"versions": versions}
		u.SetManagedFields(nil)
		u.SetAnnotations(nil) // may hold the whole manifest
		return u, nil
	}
}

package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Name is how kubectl writes an object: deployment.apps/gang-scheduler.
func Name(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	name := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		name += "." + gvk.Group
	}
	return name + "/" + object.GetName()
}

// Describe is how messages write an object: Deployment gangctl-system/gang-scheduler.
func Describe(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return object.GetKind() + " " + namespace + "/" + object.GetName()
	}
	return object.GetKind() + " " + object.GetName()
}

// key tells objects apart, whatever version of their API they are written in.
func key(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
}

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownerKind is the kind of an object's controller; empty without one.
func ownerKind(obj metav1.Object) schema.GroupKind {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return schema.GroupKind{}
	}
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

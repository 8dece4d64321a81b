package apply

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that make others possible, and are waited for.
const (
	kindNamespace  = "Namespace"
	kindDefinition = "CustomResourceDefinition"
)

// The kinds that limit what an account may do with its rights: there before the rights, and gone after them.
const (
	kindAdmission        = "ValidatingAdmissionPolicy"
	kindAdmissionBinding = "ValidatingAdmissionPolicyBinding"
)

// kinds are in the order in which objects are applied; those that are not named come before the workloads. What uses something
// comes after it, and what decides about others comes last. The ClusterRoleBinding identifies the namespace of an installation: it is there before
// anything in that namespace, and gone after it, so that what an interrupted command has left is found again.
var kinds = []string{
	kindNamespace, kindDefinition, "PriorityClass", kindAdmission, kindAdmissionBinding, "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "Role", "RoleBinding",
	"Secret", "ConfigMap", "Service", "NetworkPolicy", "PodDisruptionBudget", "", "Deployment",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

func rank(object *unstructured.Unstructured) int {
	if at := slices.Index(kinds, object.GetKind()); at >= 0 {
		return at
	}
	return slices.Index(kinds, "")
}

// Ordered returns objects in the order in which they are applied; those of a kind by their names.
func Ordered(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.GetKind(), b.GetKind()),
			strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return sorted
}

// split parts ordered objects into those that make others possible and the rest.
func split(sorted []*unstructured.Unstructured) (first, rest []*unstructured.Unstructured) {
	for i, object := range sorted {
		if kind := object.GetKind(); kind != kindNamespace && kind != kindDefinition {
			return sorted[:i], sorted[i:]
		}
	}
	return sorted, nil
}

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

// ResourceOf is the resource under which an object is served. It needs no discovery: the kinds that are shipped, and those of jobs that gangctl
// renders, have regular plurals.
func ResourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	gvr, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return gvr
}

// key distinguishes objects, whatever version of their API they are written in.
func key(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
}

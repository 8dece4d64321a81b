package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The verbs that RBAC knows beyond those of requests: to hand out rights that one does not hold.
const (
	verbBind     = "bind"
	verbEscalate = "escalate"
)

// InstallAccess is the rights to write the objects by server-side apply: for each, to get it, to create it and to patch it, and
// for roles and bindings to hand out what they hold.
func InstallAccess(objects []*unstructured.Unstructured, resourceOf func(schema.GroupVersionKind) string) []Access {
	var accesses []Access
	add := func(a Access) {
		if !slices.Contains(accesses, a) {
			accesses = append(accesses, a)
		}
	}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		access := Access{Group: gvk.Group, Resource: resourceOf(gvk), Namespace: o.GetNamespace(), Name: o.GetName()}
		for _, verb := range []string{"get", "create", "patch"} {
			a := access
			a.Verb = verb
			if verb == "create" {
				a.Name = ""
			}
			add(a)
		}
		switch o.GetKind() {
		case "ClusterRole", "Role":
			a := access
			a.Verb, a.For = verbEscalate, "the API server lets no user grant rights that they do not hold"
			add(a)
		case "ClusterRoleBinding", "RoleBinding":
			kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
			name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
			a := Access{Verb: verbBind, Group: gvk.Group, Resource: "clusterroles", Namespace: o.GetNamespace(), Name: name, For: "the API server lets no user grant rights that they do not hold"}
			if kind == "Role" {
				a.Resource = "roles"
			}
			add(a)
		}
	}
	return accesses
}

func installRights(f *Facts) []Finding {
	return reviewed(f, f.Reviews, "to write the objects of the installation")
}

package check

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
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
	findings := reviewed(f, f.Reviews, "to write the objects of the installation")
	if last := &findings[len(findings)-1]; last.Fix != "" {
		if namespaces := rbac.YAML(missingNamespaces(f)...); namespaces != "" {
			last.Fix = namespaces + "---\n" + last.Fix
		}
	}
	return findings
}

// missingNamespaces are the namespaces of the installation that are not there, without which no right can be granted in them. Of one that may be there, and
// be another's, only the name is written.
func missingNamespaces(f *Facts) []any {
	_, unlisted := f.Unlisted["namespaces"]
	var missing []any
	for _, o := range f.Shipped {
		there := slices.ContainsFunc(f.View.Snap.Namespaces, func(ns *corev1.Namespace) bool { return ns.Name == o.GetName() })
		switch {
		case o.GetKind() != "Namespace" || there:
		case unlisted:
			missing = append(missing, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.GetName()}})
		default:
			missing = append(missing, o.Object)
		}
	}
	return missing
}

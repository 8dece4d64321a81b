package apply

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
)

// Kind is a kind of object by its resource, as lists need it.
type Kind struct {
	Resource schema.GroupVersionResource
	// Kind is how messages call the object.
	Kind string
}

// ShippedKinds are all kinds that any version has shipped for the scheduler, in no order. What is no longer shipped is looked for
// among these; to look through others, Secrets above all, would take rights without need.
func ShippedKinds() []Kind {
	return []Kind{
		kind("", "namespaces", kindNamespace),
		kind("apiextensions.k8s.io", "customresourcedefinitions", kindDefinition),
		kind("scheduling.k8s.io", "priorityclasses", "PriorityClass"),
		kind("", "serviceaccounts", "ServiceAccount"),
		kind("admissionregistration.k8s.io", "validatingadmissionpolicies", kindAdmission),
		kind("admissionregistration.k8s.io", "validatingadmissionpolicybindings", kindAdmissionBinding),
		kind("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
		kind("rbac.authorization.k8s.io", "roles", "Role"),
		kind("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding"),
		kind("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"),
		kind("", "configmaps", "ConfigMap"),
		kind("", "services", "Service"),
		kind("networking.k8s.io", "networkpolicies", "NetworkPolicy"),
		kind("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
		kind("apps", "deployments", "Deployment"),
	}
}

// DerivedKinds are the kinds of objects that controllers make of shipped objects, with their labels. They go by themselves, and are waited for.
func DerivedKinds() []Kind {
	return []Kind{
		kind("apps", "replicasets", "ReplicaSet"),
		kind("", "pods", "Pod"),
		kind("discovery.k8s.io", "endpointslices", "EndpointSlice"),
	}
}

// kind is one of version v1, as all of these are.
func kind(group, resource, name string) Kind {
	return Kind{Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Kind: name}
}

// Find lists the objects of the kinds that a label selector picks, in all namespaces, in the order in which they would be
// applied. A kind that the cluster does not serve has none; any other list that fails is an error.
func Find(ctx context.Context, client dynamic.Interface, selector string, kinds []Kind) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	var errs []error
	for _, k := range kinds {
		objects, err := list(ctx, client, selector, k)
		if err != nil {
			errs = append(errs, err)
			if failure.Unanswered(err) {
				break // as the lists of the other kinds would be
			}
			continue
		}
		found = append(found, objects...)
	}
	return Ordered(found), failure.All(errs...)
}

// Served reports whether the cluster serves a kind. The caller needs the right to list it, as for Find.
func Served(ctx context.Context, client dynamic.Interface, k Kind) (bool, error) {
	_, err := client.Resource(k.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, failure.Op{Verb: "list", Resource: k.Resource, Kind: k.Kind}.Wrap(err)
	}
	return true, nil
}

// Optional are the shipped kinds without which what is installed works: servers that do not serve them need none.
func Optional() []Kind {
	return slices.DeleteFunc(ShippedKinds(), func(k Kind) bool { return k.Kind != kindAdmission && k.Kind != kindAdmissionBinding })
}

// everywhere reports whether every cluster serves a kind. An address at which it is not found is not that of an API server.
func everywhere(k Kind) bool {
	switch k.Resource.Group {
	case corev1.GroupName, appsv1.GroupName, rbacv1.GroupName:
		return true
	}
	return false
}

func list(ctx context.Context, client dynamic.Interface, selector string, k Kind) ([]*unstructured.Unstructured, error) {
	pages, err := paging.All(ctx, metav1.ListOptions{LabelSelector: selector}, client.Resource(k.Resource).List)
	if apierrors.IsNotFound(err) && !everywhere(k) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: k.Resource, Kind: k.Kind}.Wrap(err)
	}
	var found []*unstructured.Unstructured
	for _, page := range pages {
		for i := range page.Items {
			found = append(found, &page.Items[i])
		}
	}
	return found, nil
}

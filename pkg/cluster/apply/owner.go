package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Get returns the object of that kind and name as it is in the cluster; nil if it is not there.
func Get(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there, err := resourceOf(client, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return there, operation("get", object).Wrap(err)
}

// Owner says, as far as the object tells, who made it: its Helm release, its Argo CD application, the tool that it is labelled
// as managed by, or the first that wrote it.
func Owner(object *unstructured.Unstructured) string {
	annotations, labels := object.GetAnnotations(), object.GetLabels()
	if name := annotations["meta.helm.sh/release-name"]; name != "" {
		return "Helm release " + annotations["meta.helm.sh/release-namespace"] + "/" + name
	}
	if name := annotations["argocd.argoproj.io/tracking-id"]; name != "" {
		return "Argo CD (" + name + ")"
	}
	if name := labels["app.kubernetes.io/managed-by"]; name != "" {
		return name
	}
	for _, fields := range object.GetManagedFields() {
		if fields.Subresource == "" && fields.Manager != "" {
			return fields.Manager
		}
	}
	return "somebody else"
}

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// errOwned is in the error of an object with fields of others that would be changed.
var errOwned = errors.New("others own what would be changed")

// Conflicts reports the objects with fields of others that would be changed, all of them, before any is written. What else may keep an object from being
// applied can depend on those before it, and is reported when it is.
func (a *Applier) Conflicts(ctx context.Context, objects []*unstructured.Unstructured) error {
	if a.Force || a.DryRun {
		return nil
	}
	trial := Applier{Client: a.Client, DryRun: true}
	var conflicts []error
	for _, object := range Ordered(objects) {
		if _, err := trial.one(ctx, object); errors.Is(err, errOwned) {
			conflicts = append(conflicts, err)
		}
	}
	return failure.All(conflicts...)
}

// explain reports who else manages an object that could not be applied.
func explain(object *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return operation("apply", object).Wrap(err)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, fmt.Sprintf("%s is owned by %s", cause.Field, owner(cause.Message)))
		}
	}
	if len(fields) == 0 {
		return operation("apply", object).Wrap(err)
	}
	return failure.Errorf("apply %s: %w: %s", Describe(object), errOwned, strings.Join(fields, ", ")).
		WithHint("leave it to them, or take it over with --force-conflicts")
}

// owner is the field manager of a field, in the server's message `conflict with "NAME" using VERSION`.
func owner(message string) string {
	message = strings.TrimPrefix(message, "conflict with ")
	if name, _, found := strings.Cut(strings.TrimPrefix(message, `"`), `"`); found {
		return name
	}
	return message
}

// Get returns the object of that kind and name as it is in the cluster; nil if it is not there.
func Get(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there, err := clientOf(client, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return there, operation("get", object).Wrap(err)
}

// Owner is the maker of an object, as far as the object has it: its Helm release, its Argo CD application, the tool that it is labelled
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
	return "another user"
}

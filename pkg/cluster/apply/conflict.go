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
	"github.com/gangctl/gangctl/pkg/diagnose/command"
)

// errOwned is in the error of an object with fields of others that would be changed.
var errOwned = errors.New("others own what would be changed")

// Conflicts reports the objects that cannot be applied because of what is there, all of them, before any is written. What else may keep an object from being
// applied can depend on those before it, and is reported when it is.
func (a *Applier) Conflicts(ctx context.Context, objects []*unstructured.Unstructured) error {
	return failure.All(a.Obstacles(ctx, objects)...)
}

// Obstacles are why objects cannot be applied because of what is there, an error for each: it is not ours, others own its fields, or it cannot
// be changed. A dry run reports fields of others with the object itself.
func (a *Applier) Obstacles(ctx context.Context, objects []*unstructured.Unstructured) []error {
	var all []error
	for _, object := range Ordered(objects) {
		there, err := Get(ctx, a.Client, object)
		if failure.Unanswered(err) {
			return all // as the others would be: that is reported when they are applied, and what may not be read as well
		}
		if err != nil || there == nil {
			continue
		}
		if err := a.obstacle(ctx, object, there); err != nil && !(a.DryRun && errors.Is(err, errOwned)) {
			all = append(all, err)
		}
	}
	return all
}

// obstacle tries to apply an object to what is there. A namespace and a definition of others are used as they are.
func (a *Applier) obstacle(ctx context.Context, object, there *unstructured.Unstructured) error {
	if a.Ours != nil && !a.Ours(there) {
		if kind := object.GetKind(); kind == kindNamespace || kind == kindDefinition {
			return nil
		}
		return failure.Errorf("%s is there already, made by %s", Describe(object), Owner(there)).
			WithHint("it is not gangctl's, and is not touched; if nothing needs it, remove it, and run the command again: %s", kubectl("delete", object))
	}
	trial := Applier{Client: a.Client, Force: a.Force, DryRun: true}
	_, err := trial.one(ctx, object)
	if fixed(err) {
		return unchangeable(object, err)
	}
	if !errors.Is(err, errOwned) {
		return nil
	}
	trial.Force = true
	if _, forced := trial.one(ctx, object); fixed(forced) {
		return unchangeable(object, forced)
	}
	return err
}

// fixed reports whether an object was refused because a field of it can only be set when it is created. API servers have no reason for that,
// but these words.
func fixed(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	for _, words := range []string{"immutable", "may not be changed", "cannot change", "may not change"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// unchangeable is the error of an object that must be created again.
func unchangeable(object *unstructured.Unstructured, err error) error {
	return failure.Errorf("%w", err).WithHint("what is there cannot be changed into it; remove it, and run the command again: %s", kubectl("delete", object))
}

// kubectl is the command line that does something with an object.
func kubectl(verb string, object *unstructured.Unstructured) string {
	return command.Kubectl(object.GetNamespace(), verb, Name(object))
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

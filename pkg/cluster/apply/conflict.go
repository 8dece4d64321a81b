package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// explain says of an object that could not be applied who else has a hand in it.
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
	return failure.Errorf("apply %s: others own what would be changed: %s", Describe(object), strings.Join(fields, ", ")).
		WithHint("leave it to them, or take it over with --force-conflicts")
}

// owner is who holds a field, in the server's words `conflict with "NAME" using VERSION`.
func owner(message string) string {
	message = strings.TrimPrefix(message, "conflict with ")
	if name, _, found := strings.Cut(strings.TrimPrefix(message, `"`), `"`); found {
		return name
	}
	return message
}

package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
)

// How long a definition may take to be served, and how often it is looked at.
const (
	establishTimeout = time.Minute
	pollEvery        = 200 * time.Millisecond
)

// established waits until the definitions among the objects are served.
func (a *Applier) established(ctx context.Context, objects []*unstructured.Unstructured) error {
	var errs []error
	for _, object := range objects {
		if object.GetKind() != kindDefinition {
			continue
		}
		var last *unstructured.Unstructured
		err := wait.PollUntilContextTimeout(ctx, pollEvery, establishTimeout, true, func(ctx context.Context) (bool, error) {
			found, err := clientOf(a.Client, object).Get(ctx, object.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, operation("get", object).Wrap(err)
			}
			last = found
			return gang.IsTrue(found, "Established"), nil
		})
		switch {
		case err == nil:
		case wait.Interrupted(err) && ctx.Err() == nil:
			errs = append(errs, notServed(last))
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// notServed reports why a definition is not served.
func notServed(definition *unstructured.Unstructured) error {
	what := fmt.Sprintf("%s is not served after %s", Describe(definition), establishTimeout)
	if why, status := gang.ConditionIn(definition, "NamesAccepted"); status == "False" {
		return failure.Errorf("%s: its names are taken: %s", what, why.Message)
	}
	return failure.Errorf("%s", what).WithHint("see why: kubectl describe crd %s", definition.GetName())
}

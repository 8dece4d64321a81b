package smoke

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// pollEvery is how often it is looked whether deleted pods are gone.
const pollEvery = 200 * time.Millisecond

// remove deletes what was made, or may have been, and waits until the pods are gone: their room is free then.
func (r *run) remove(ctx context.Context) error {
	pods := r.client.Typed.CoreV1().Pods(r.o.Namespace)
	var errs []error
	for _, name := range r.pods {
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, operation("delete", r.o.Namespace, name).Wrap(err))
		}
	}
	if r.group {
		err := r.client.Dynamic.Resource(schedulerplugins.GVR()).Namespace(r.o.Namespace).Delete(ctx, r.o.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, groupOperation("delete", r.o).Wrap(err))
		}
	}
	if len(errs) > 0 || len(r.pods) == 0 {
		return failure.All(errs...)
	}
	return wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		left, err := pods.List(ctx, metav1.ListOptions{LabelSelector: r.selector()})
		if err != nil {
			return false, operation("list", r.o.Namespace, "").Wrap(err)
		}
		return len(left.Items) == 0, nil
	})
}

// selector finds everything that the run makes.
func (r *run) selector() string { return Label + "=" + r.o.Name }

func groupOperation(verb string, o Options) failure.Op {
	return failure.Op{Verb: verb, Resource: schedulerplugins.GVR(), Kind: schedulerplugins.GVK().Kind, Namespace: o.Namespace, Name: o.Name}
}

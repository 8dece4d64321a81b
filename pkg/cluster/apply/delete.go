package apply

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Prune deletes those of the found objects that are not desired. Definitions and namespaces stay: with them, what
// others made would go.
func (a *Applier) Prune(ctx context.Context, found, desired []*unstructured.Unstructured) error {
	keep := map[string]bool{}
	for _, object := range desired {
		keep[key(object)] = true
	}
	var gone []*unstructured.Unstructured
	for _, object := range found {
		if kind := object.GetKind(); !keep[key(object)] && kind != kindNamespace && kind != kindDefinition {
			gone = append(gone, object)
		}
	}
	return a.remove(ctx, gone, Pruned)
}

// Delete deletes objects, those that were applied last first. Every one is tried.
func (a *Applier) Delete(ctx context.Context, objects []*unstructured.Unstructured) error {
	return a.remove(ctx, objects, Deleted)
}

// remove deletes exactly the objects that were found: none of the same name that was created since.
func (a *Applier) remove(ctx context.Context, objects []*unstructured.Unstructured, action Action) error {
	failed := &failures{total: len(objects)}
	for _, object := range slices.Backward(Ordered(objects)) {
		if failed.stop != nil {
			break
		}
		uid, background := object.GetUID(), metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
		if a.DryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		err := clientOf(a.Client, object).Delete(ctx, object.GetName(), options)
		if err != nil && !apierrors.IsNotFound(err) {
			failed.add(operation("delete", object).Wrap(err))
			continue
		}
		failed.done++
		a.report(Result{Object: object, Action: action, Before: object})
	}
	return failed.err()
}

// WaitGone waits until none of the objects is there any more, and reports what holds those that stay.
func (a *Applier) WaitGone(ctx context.Context, objects []*unstructured.Unstructured, timeout time.Duration) error {
	left := slices.Clone(objects)
	err := wait.PollUntilContextTimeout(ctx, pollEvery, timeout, true, func(ctx context.Context) (bool, error) {
		var still []*unstructured.Unstructured
		for _, object := range left {
			now, err := clientOf(a.Client, object).Get(ctx, object.GetName(), metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return false, operation("get", object).Wrap(err)
			case now.GetUID() == object.GetUID():
				still = append(still, now)
			}
		}
		left = still
		return len(left) == 0, nil
	})
	if err == nil || !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	var errs []error
	for _, object := range left {
		errs = append(errs, stays(object, timeout))
	}
	return failure.All(errs...)
}

// stays reports why an object that was deleted is still there.
func stays(object *unstructured.Unstructured, timeout time.Duration) error {
	why := ""
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		why = ", held by its finalizers " + strings.Join(finalizers, ", ")
	}
	for _, kind := range []string{"NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionDiscoveryFailure"} {
		if condition, status := gang.ConditionIn(object, kind); status == "True" {
			why += ": " + condition.Message
		}
	}
	return failure.Errorf("%s is still there after %s%s", Describe(object), timeout, why).
		WithHint("see what holds it: kubectl get %s -o yaml", strings.Replace(Name(object), "/", " ", 1))
}

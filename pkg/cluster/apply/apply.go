// Package apply puts objects on a cluster and takes them away again: by server-side apply, in stages, with one result for
// each object, and with what is no longer shipped found by its labels.
package apply

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// FieldManager owns the fields that are applied.
const FieldManager = "gangctl"

// Action is the outcome for an object.
type Action string

// The actions.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Pruned     Action = "pruned"
	Deleted    Action = "deleted"
)

// Result is the outcome for one object, or, in a dry run, what it would be.
type Result struct {
	// Object is as it was requested, or as it was found where it was taken away.
	Object *unstructured.Unstructured
	Action Action
	// Before and After are the object in the cluster; nil where there is none.
	Before, After *unstructured.Unstructured
}

// Applier applies objects. Errors do not end its work, except that of a server that cannot be reached: all of them are reported.
type Applier struct {
	Client dynamic.Interface
	// Force takes over fields that others own.
	Force bool
	// DryRun has the server do everything but keep it.
	DryRun bool
	// Ours reports whether an object that is there is of the installation that is applied; without it, all are.
	Ours func(there *unstructured.Unstructured) bool
	// Unless, if there is one, returns why an object is not applied onto what is there at that moment; there is nil where there is none.
	Unless func(object, there *unstructured.Unstructured) error
	// Report is called with each object when it is done.
	Report func(Result)
}

// Apply server-side applies objects: first namespaces and definitions, until these are served, then the rest. An object whose
// namespace could not be made is not tried.
func (a *Applier) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	first, rest := split(Ordered(objects))
	failed := &failures{total: len(objects)}
	applied := a.each(ctx, first, failed)
	if failed.stop == nil && !a.DryRun {
		failed.add(a.established(ctx, applied))
	}
	if failed.stop == nil {
		a.each(ctx, rest, failed)
	}
	return failed.err()
}

// each applies objects one after the other, notes what failed, and returns those that did not.
func (a *Applier) each(ctx context.Context, objects []*unstructured.Unstructured, failed *failures) (applied []*unstructured.Unstructured) {
	for _, object := range objects {
		if failed.stop != nil {
			return applied
		}
		if failed.namespaces[object.GetNamespace()] {
			failed.add(failure.Errorf("apply %s: not tried, because there is no namespace for it", Describe(object)))
			continue
		}
		result, err := a.one(ctx, object)
		if err != nil {
			failed.addObject(object, err)
			continue
		}
		failed.done++
		applied = append(applied, object)
		a.report(result)
	}
	return applied
}

// tries is how often an object is applied that is written by others at the same time.
const tries = 5

// one applies one object. One that depends on what is there is applied to the version that was looked at, and to no other.
func (a *Applier) one(ctx context.Context, object *unstructured.Unstructured) (Result, error) {
	for try := 1; ; try++ {
		before, err := Get(ctx, a.Client, object)
		if err != nil {
			return Result{}, err
		}
		desired := object
		if a.Unless != nil {
			if err := a.Unless(object, before); err != nil {
				return Result{}, err
			}
			if before != nil {
				desired = object.DeepCopy()
				desired.SetResourceVersion(before.GetResourceVersion())
			}
		}
		result, err := a.onto(ctx, before, desired)
		if a.Unless == nil || try == tries || !apierrors.IsConflict(err) || errors.Is(err, errOwned) {
			result.Object = object
			return result, err
		}
	}
}

// onto applies an object to what is there. What a server answers to an apply that changes nothing has the version that was there.
func (a *Applier) onto(ctx context.Context, before, object *unstructured.Unstructured) (Result, error) {
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: a.Force}
	if a.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := clientOf(a.Client, object).Apply(ctx, object.GetName(), object, options)
	if a.DryRun && before == nil && failure.NamespaceMissing(err) {
		after, err = object, nil // as the namespace is only thought of, the server cannot look any further
	}
	if err != nil {
		return Result{}, explain(object, err)
	}
	result := Result{Object: object, Action: Configured, Before: before, After: after}
	switch {
	case before == nil:
		result.Action = Created
	case Same(before, after):
		result.Action = Unchanged
	}
	return result, nil
}

func (a *Applier) report(r Result) {
	if a.Report != nil {
		a.Report(r)
	}
}

// clientOf is the client for where an object is, or goes.
func clientOf(client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr := ResourceOf(object)
	if namespace := object.GetNamespace(); namespace != "" {
		return client.Resource(gvr).Namespace(namespace)
	}
	return client.Resource(gvr)
}

func operation(verb string, object *unstructured.Unstructured) failure.Op {
	return failure.Op{Verb: verb, Resource: ResourceOf(object), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// failures are the errors of several objects.
type failures struct {
	total, done int
	errs        []error
	// namespaces are those that could not be made.
	namespaces map[string]bool
	// stop is why nothing more is tried.
	stop error
}

func (f *failures) addObject(object *unstructured.Unstructured, err error) {
	if object.GetKind() == "Namespace" {
		if f.namespaces == nil {
			f.namespaces = map[string]bool{}
		}
		f.namespaces[object.GetName()] = true
	}
	f.add(err)
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	f.errs = append(f.errs, err)
	var lost *url.Error
	if errors.As(err, &lost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsUnauthorized(err) {
		f.stop = err
	}
}

func (f *failures) err() error {
	all := failure.All(f.errs...)
	if f.stop == nil || all == nil {
		return all
	}
	why := failure.From(all)
	rest := fmt.Sprintf("%d of %d objects are done; to complete them, run the same command again", f.done, f.total)
	if why.Hint != "" {
		rest = why.Hint + "\n" + rest
	}
	return why.WithHint("%s", rest)
}

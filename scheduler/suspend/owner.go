package suspend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// maxOwners is how many owners are followed from a job to the whole of which it is a part. The launcher of an MPIJob has one.
// Owner references are the users' to write, and may form circles.
const maxOwners = 3

// whole returns the job that a job is a part of, as it is now: itself, if of none. The object is nil if
// another has its name. Pods of a job that is not there can be deleted one by one: it cannot fail for it.
func (s *Suspender) whole(ctx context.Context, j Target) (Target, *unstructured.Unstructured, error) {
	object, err := s.get(ctx, j)
	switch {
	case apierrors.IsNotFound(err):
		return j, nil, &Refusal{why: fmt.Sprintf("%s is not there", j), singly: true}
	case err != nil:
		return j, nil, fmt.Errorf("get %s: %w", j, err)
	case object.GetUID() != j.UID:
		return j, nil, nil
	}
	part, itself, seen := j, object, sets.New(j.UID)
	for range maxOwners {
		owner, ok := jobOf(metav1.GetControllerOf(object), j.Namespace)
		if !ok || !owner.Possible() {
			return j, object, nil
		}
		if seen.Has(owner.UID) {
			return endless(part, itself, fmt.Sprintf("belongs to itself, by way of %s", j))
		}
		above, err := s.get(ctx, owner)
		switch {
		case apierrors.IsNotFound(err) || err == nil && above.GetUID() != owner.UID:
			return j, object, nil // anything may be written of an owner that does not exist
		case err != nil:
			return j, nil, fmt.Errorf("get %s: %w", owner, err)
		}
		seen.Insert(owner.UID)
		j, object = owner, above
	}
	if owner, ok := jobOf(metav1.GetControllerOf(object), j.Namespace); !ok || !owner.Possible() {
		return j, object, nil
	}
	return endless(part, itself, fmt.Sprintf("has more than %d owners above each other", maxOwners))
}

// endless returns what is suspended of a job with owners that no controller wrote. Where it can, it gives its pods back one by one;
// another is suspended by itself, or such owners would make it immune.
func endless(part Target, object *unstructured.Unstructured, why string) (Target, *unstructured.Unstructured, error) {
	if part.Brittle() {
		return part, object, nil
	}
	return part, nil, &Refusal{why: fmt.Sprintf("%s %s", part, why), singly: true}
}

// kueueJobLabel is the UID of the job on a Workload, which Kueue sets.
const kueueJobLabel = kueue.Group + "/job-uid"

// managedByKueue reports whether Kueue decides when a job is suspended: it has a Workload for it. The label on the job is the
// user's to write, with or without Kueue.
func (s *Suspender) managedByKueue(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	if _, ok := kueue.QueueOf(object); !ok {
		return false, nil
	}
	for _, version := range []string{"v1beta2", "v1beta1"} {
		resource := schema.GroupVersionResource{Group: kueue.Group, Version: version, Resource: "workloads"}
		list, err := s.Dynamic.Resource(resource).Namespace(object.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: kueueJobLabel + "=" + string(object.GetUID())})
		switch {
		case apierrors.IsNotFound(err):
			continue // not served
		case apierrors.IsForbidden(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("list Kueue's Workloads of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
		return slices.ContainsFunc(list.Items, func(w unstructured.Unstructured) bool {
			return slices.ContainsFunc(w.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == object.GetUID() })
		}), nil
	}
	return false, nil
}

// resumedBy reports whether the owner of a job may resume it at any time. The reference is the user's to write: it counts for an
// owner that exists and is of a kind that may have jobs. One that we may not read counts only where the job can give its places
// back otherwise, or a reference to anything would make a job immune.
func (s *Suspender) resumedBy(ctx context.Context, j Target, owner *metav1.OwnerReference) (bool, error) {
	if !mayExist(owner) || leavesAlone(owner) {
		return false, nil
	}
	if above, ok := jobOf(owner, j.Namespace); ok && above.Possible() { // a part that was not left to its whole
		return false, nil
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || builtIn(version.Group) {
		return false, nil
	}
	resource, _ := apimeta.UnsafeGuessKindToResource(version.WithKind(owner.Kind))
	object, err := s.Dynamic.Resource(resource).Namespace(j.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return !j.Brittle(), nil
	case err != nil:
		return false, fmt.Errorf("get %s %s, the owner of %s: %w", owner.Kind, owner.Name, j, err)
	}
	return object.GetUID() == owner.UID, nil
}

// builtIn reports whether an API group is one of Kubernetes itself. Of its kinds only those of batch have jobs. Users may write others that the
// scheduler may read, such as a PodDisruptionBudget, and have them own anything.
func builtIn(group string) bool {
	if !strings.Contains(group, ".") {
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io") && !strings.HasSuffix(group, ".sigs.k8s.io")
}

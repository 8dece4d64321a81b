package suspend

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// findParts finds the parts of a job that are not remembered: an earlier scheduler suspended it, or another part of it had to give way. Those
// that may not be listed stay unknown.
func (s *Suspender) findParts(ctx context.Context, e *entry) error {
	wholes := []Target{e.Target}
	for range maxOwners {
		var below []Target
		for _, whole := range wholes {
			parts, err := s.listParts(ctx, whole)
			switch {
			case apierrors.IsForbidden(err):
				klog.FromContext(ctx).Info("Cannot determine the parts of a suspended job; it is resumed when the pods of those that are known are gone", "job", whole.String(), "err", err)
			case err != nil && !apierrors.IsNotFound(err):
				return fmt.Errorf("list the parts of %s: %w", whole, err)
			}
			below = append(below, parts...)
		}
		s.addParts(e, below)
		wholes = below
	}
	return nil
}

// listParts are the parts that a job controls.
func (s *Suspender) listParts(ctx context.Context, whole Target) (parts []Target, err error) {
	reader, _ := kind.ByResource(whole.resource.GroupResource()) // of an unknown kind there are no parts
	made, ok := kind.PartsOf(reader)
	if !ok {
		return nil, nil
	}
	resource := schema.GroupVersionResource{Group: made.Group, Version: made.Versions[0], Resource: made.Resource}
	options := metav1.ListOptions{Limit: recallPage}
	if reader.PartLabel != "" {
		options.LabelSelector = reader.PartLabel + "=" + whole.Name
	}
	list := s.Dynamic.Resource(resource).Namespace(whole.Namespace).List
	err = paging.Each(ctx, options, list, func() { parts = nil }, func(page *unstructured.UnstructuredList) {
		for i := range page.Items {
			object := &page.Items[i]
			if owner := metav1.GetControllerOf(object); owner != nil && owner.UID == whole.UID {
				parts = append(parts, targetOf(resource, object))
			}
		}
	})
	return parts, err
}

// targetOf is the job that an object of a kind is.
func targetOf(resource schema.GroupVersionResource, object *unstructured.Unstructured) Target {
	return Target{
		resource: resource, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: object.GetUID(), field: fieldOf(resource.Group),
	}
}

// addParts records parts of a job, unless it was forgotten meanwhile.
func (s *Suspender) addParts(e *entry, parts []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended[e.Identity()] != e {
		return
	}
	for _, part := range parts {
		e.parts[part.Identity()] = part
		s.suspended[part.Identity()] = e
	}
}

// waits reports whether a job has pods left, or is to be kept.
func (s *Suspender) waits(e *entry) bool {
	return slices.ContainsFunc(s.jobs(e), func(j Target) bool { return s.Owned(j) || s.Keep != nil && s.Keep(j.Identity()) })
}

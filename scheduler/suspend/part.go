package suspend

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// partKind are the parts through which jobs of a kind have their pods.
type partKind struct {
	resource schema.GroupVersionResource
	// label is on parts and names their whole; empty for parts that are found by their owner only.
	label string
}

// partsOf are the parts of jobs of a kind; ok is false for kinds that have none.
func partsOf(whole schema.GroupVersionResource) (k partKind, ok bool) {
	jobs := batchv1.SchemeGroupVersion.WithResource("jobs")
	switch whole.GroupResource() {
	case schema.GroupResource{Group: trainjob.Group, Resource: trainjob.Resource}:
		return partKind{resource: schema.GroupVersionResource{Group: jobset.Group, Version: jobset.Version, Resource: jobset.Resource}}, true
	case schema.GroupResource{Group: jobset.Group, Resource: jobset.Resource}:
		return partKind{resource: jobs, label: jobset.NameLabel}, true
	case schema.GroupResource{Group: ray.Group, Resource: ray.JobResource}:
		return partKind{resource: schema.GroupVersionResource{Group: ray.Group, Version: ray.Version, Resource: ray.ClusterResource}}, true
	case schema.GroupResource{Group: operatorGroup, Resource: "mpijobs"}:
		return partKind{resource: jobs}, true
	}
	return partKind{}, false
}

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
	kind, ok := partsOf(whole.resource)
	if !ok {
		return nil, nil
	}
	options := metav1.ListOptions{Limit: recallPage}
	if kind.label != "" {
		options.LabelSelector = kind.label + "=" + whole.Name
	}
	list := s.Dynamic.Resource(kind.resource).Namespace(whole.Namespace).List
	err = paging.Each(ctx, options, list, func() { parts = nil }, func(page *unstructured.UnstructuredList) {
		for i := range page.Items {
			object := &page.Items[i]
			if owner := metav1.GetControllerOf(object); owner != nil && owner.UID == whole.UID {
				parts = append(parts, targetOf(kind.resource, object))
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

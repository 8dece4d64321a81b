package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Listed are the jobs of every kind.
type Listed struct {
	// Jobs are sorted by namespace, name and kind.
	Jobs []*gang.Job
	// Refused are the failures of kinds that the user may not list. The jobs are not all there are.
	Refused []error
}

// fromCache lets the API server answer from its watch cache. A server that does not will answer in pages, which the pager
// requests and follows.
func fromCache(selector string) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: "0", LabelSelector: selector}
}

// Selection is which jobs are listed.
type Selection struct {
	// Namespace is empty for all namespaces, Selector a label selector.
	Namespace, Selector string
	// Objects keeps the objects that the jobs were read from.
	Objects bool
}

// List lists jobs, with one request a kind. A kind that the cluster does not serve is passed over, unless it serves none of an operator.
func List(ctx context.Context, client *kube.Client, o Selection) (*Listed, error) {
	readers := kind.Readers()
	found := make([][]*gang.Job, len(readers))
	refused := make([]error, len(readers))
	atOnce(len(readers), func(i int) { found[i], refused[i] = listKind(ctx, client, readers[i], o) })
	for _, err := range refused {
		if err != nil && !apierrors.IsForbidden(err) && !unserved(err) {
			return nil, err
		}
	}
	all := &Listed{}
	var nowhere error
	served := 0
	for i, r := range readers {
		all.Jobs = append(all.Jobs, found[i]...)
		switch {
		case apierrors.IsForbidden(refused[i]):
			if ok, err := serves(client, r); err != nil || ok {
				all.Refused = append(all.Refused, refused[i])
				served++
			}
		case unserved(refused[i]):
			nowhere = cmp.Or(nowhere, refused[i])
		case r.Group != batchv1.GroupName || len(found[i]) > 0:
			served++
		}
	}
	if served == 0 && nowhere != nil {
		return nil, nowhere
	}
	sortJobs(all.Jobs)
	return all, nil
}

// serves reports whether the cluster has a kind at all: a right may be missing for what is not there.
func serves(client *kube.Client, r gang.JobReader) (bool, error) {
	for _, version := range versions(r) {
		list, err := client.Typed.Discovery().ServerResourcesForGroupVersion(schema.GroupVersion{Group: r.Group, Version: version}.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == r.Resource }) {
			return true, nil
		}
	}
	return false, nil
}

func listKind(ctx context.Context, client *kube.Client, r gang.JobReader, o Selection) ([]*gang.Job, error) {
	if r.Group == batchv1.GroupName {
		return listBatch(ctx, client, o)
	}
	var first error
	for _, version := range versions(r) {
		gvr := schema.GroupVersionResource{Group: r.Group, Version: version, Resource: r.Resource}
		all, err := collect.Objects(ctx, client, gvr, o.Namespace, o.Selector, o.read)
		err = failure.Op{Verb: "list", Resource: gvr, Kind: r.Kind, Namespace: o.Namespace}.Wrap(err)
		if !unserved(err) {
			return all, err
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// read reads a job.
func (o Selection) read(object *unstructured.Unstructured) (*gang.Job, error) {
	job, err := Read(object)
	if err == nil && !o.Objects {
		job.Object = nil
	}
	return job, err
}

// listBatch lists the Jobs of Kubernetes that are gangs. Most are not, and what they do is of no interest here.
func listBatch(ctx context.Context, client *kube.Client, o Selection) ([]*gang.Job, error) {
	resource := client.Typed.BatchV1().Jobs(o.Namespace)
	gvk := batchv1.SchemeGroupVersion.WithKind("Job")
	reader, ok := kind.ByKind(gvk.GroupKind())
	if !ok {
		return nil, errors.New("jobs of Kubernetes have no reader")
	}
	gvr := batchv1.SchemeGroupVersion.WithResource(reader.Resource)
	var all []*gang.Job
	err := each(ctx, fromCache(o.Selector), func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		func(item runtime.Object) error {
			typed, ok := item.(*batchv1.Job)
			if !ok {
				return fmt.Errorf("unexpected %T", item)
			}
			job := batchjob.Convert(typed)
			if !isGang(&job) {
				return nil
			}
			all = append(all, &job)
			if !o.Objects {
				return nil
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
			if err != nil {
				return err
			}
			job.Object = &unstructured.Unstructured{Object: content}
			job.Object.SetGroupVersionKind(gvk)
			return nil
		})
	return all, failure.Op{Verb: "list", Resource: gvr, Kind: gvk.Kind, Namespace: o.Namespace}.Wrap(err)
}

func each(ctx context.Context, options metav1.ListOptions, list pager.ListPageFunc, add func(runtime.Object) error) error {
	all, _, err := pager.New(list).List(ctx, options)
	if err != nil {
		return err
	}
	return meta.EachListItem(all, add)
}

package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Listed are the jobs of every kind.
type Listed struct {
	// Jobs are sorted by namespace, name and kind.
	Jobs []*gang.Job
	// Refused are the failures of kinds that the user may not list, and of jobs that cannot be read: one of another user's is no reason to
	// show none. The jobs are not all there are.
	Refused []error
}

// fromCache lets the API server answer from its watch cache. A server that does not will answer in pages, which are
// followed.
func fromCache(selector string) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: "0", LabelSelector: selector}
}

// Selection is which jobs are listed.
type Selection struct {
	// Namespace is empty for all namespaces, Selector a label selector.
	Namespace, Selector string
	// Objects keeps the objects that the jobs were read from.
	Objects bool
	// Foresee has TrainJobs without a JobSet get what they will have, which [Foresee] reads.
	Foresee bool
	// Count, if set, counts the objects that have been read, while they are.
	Count *atomic.Int64
}

// List lists jobs, with one request a kind. A kind that the cluster does not serve is passed over, unless it serves none of an operator.
func List(ctx context.Context, client *kube.Client, o Selection) (*Listed, error) {
	readers := kind.Readers()
	found := make([][]*gang.Job, len(readers))
	refused, unread := make([]error, len(readers)), make([]error, len(readers))
	atOnce(len(readers), func(i int) { found[i], unread[i], refused[i] = listKind(ctx, client, readers[i], o) })
	for _, err := range refused {
		if err != nil && !apierrors.IsForbidden(err) && !failure.NotServed(err) {
			return nil, err
		}
	}
	all := &Listed{}
	var nowhere error
	served := 0
	for i, r := range readers {
		all.Jobs = append(all.Jobs, found[i]...)
		if unread[i] != nil {
			all.Refused = append(all.Refused, unread[i])
		}
		switch {
		case apierrors.IsForbidden(refused[i]):
			if ok, err := serves(client, r); err != nil || ok {
				all.Refused = append(all.Refused, refused[i])
				served++
			}
		case failure.NotServed(refused[i]):
			nowhere = moreTelling(r, nowhere, refused[i])
		case r.Group != batchv1.GroupName || len(found[i]) > 0:
			served++
		}
	}
	if served == 0 && nowhere != nil {
		return nil, nowhere
	}
	made, err := listMade(ctx, client, o, all.Jobs)
	if err != nil {
		return nil, err
	}
	all.Jobs = joinAll(all.Jobs, made)
	if o.Foresee {
		Foresee(ctx, client, all.Jobs)
	}
	if !o.Objects {
		for _, job := range all.Jobs {
			job.Object = nil
		}
	}
	sortJobs(all.Jobs)
	return all, nil
}

// listMade lists what was made of jobs, where a selector matches the jobs and may not match that.
func listMade(ctx context.Context, client *kube.Client, o Selection, all []*gang.Job) ([]*gang.Job, error) {
	var made []*gang.Job
	listed := map[schema.GroupKind]bool{}
	for _, job := range all {
		makes, ok := kind.ByKind(job.Reader.Makes)
		if !ok || job.Reader.Join == nil || o.Selector == "" || listed[makes.GroupKind] {
			continue
		}
		listed[makes.GroupKind] = true
		found, _, err := listKind(ctx, client, makes, Selection{Namespace: o.Namespace, Objects: true})
		if err != nil && !apierrors.IsForbidden(err) && !failure.NotServed(err) {
			return nil, err
		}
		made = append(made, found...)
	}
	return made, nil
}

// serves reports whether the cluster has a kind at all: a right may be missing for what is not there.
func serves(client *kube.Client, r gang.JobReader) (bool, error) {
	for _, version := range r.Versions {
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

// listKind lists the jobs of a kind. Unread is about those that cannot be read: the first of them, and how many more there are.
func listKind(ctx context.Context, client *kube.Client, r gang.JobReader, o Selection) (all []*gang.Job, unread, err error) {
	if r.Group == batchv1.GroupName {
		all, err = listBatch(ctx, client, o)
		return all, nil, err
	}
	var first error
	for _, version := range r.Versions {
		gvr := schema.GroupVersionResource{Group: r.Group, Version: version, Resource: r.Resource}
		results, err := collect.Objects(ctx, client, gvr, o.Namespace, o.Selector, o.read)
		err = failure.Op{Verb: "list", Resource: gvr, Kind: r.Kind, Namespace: o.Namespace}.Wrap(err)
		if !failure.NotServed(err) {
			all, unread = parted(r, results)
			return all, unread, err
		}
		first = cmp.Or(first, err)
	}
	return nil, nil, first
}

// result is a job, or why an object cannot be read as one.
type result struct {
	job *gang.Job
	err error
}

// read reads a job. One that cannot be read ends no list.
func (o Selection) read(object *unstructured.Unstructured) (result, error) {
	o.count(1)
	job, err := Read(object)
	if needed := o.Foresee && job != nil && job.Reader.Join != nil; err == nil && !o.Objects && !needed && !joins(job.Kind.GroupKind()) {
		job.Object = nil
	}
	return result{job, err}, nil
}

// joins reports whether objects of a kind are made of jobs, which get their members from them.
func joins(made schema.GroupKind) bool {
	return slices.ContainsFunc(kind.Readers(), func(r gang.JobReader) bool { return r.Join != nil && r.Makes == made })
}

// count counts objects that were read, where that is shown.
func (o Selection) count(n int) {
	if o.Count != nil {
		o.Count.Add(int64(n))
	}
}

// parted are the jobs among results, and the first error with how many more there are.
func parted(r gang.JobReader, results []result) (all []*gang.Job, unread error) {
	more := 0
	for _, found := range results {
		switch {
		case found.err == nil:
			all = append(all, found.job)
		case unread == nil:
			unread = found.err
		default:
			more++
		}
	}
	if more > 0 {
		unread = fmt.Errorf("%w; and %d more %ss", unread, more, r.Title())
	}
	return all, unread
}

// listBatch lists the Jobs of Kubernetes that are gangs. Most are not, and what they do is of no interest here.
func listBatch(ctx context.Context, client *kube.Client, o Selection) ([]*gang.Job, error) {
	gvk := batchv1.SchemeGroupVersion.WithKind("Job")
	reader, ok := kind.ByKind(gvk.GroupKind())
	if !ok {
		return nil, errors.New("jobs of Kubernetes have no reader")
	}
	gvr := batchv1.SchemeGroupVersion.WithResource(reader.Resource)
	pages, err := paging.All(ctx, fromCache(o.Selector), client.Typed.BatchV1().Jobs(o.Namespace).List)
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: gvr, Kind: gvk.Kind, Namespace: o.Namespace}.Wrap(err)
	}
	var all []*gang.Job
	for _, page := range pages {
		o.count(len(page.Items))
		for i := range page.Items {
			job := batchjob.Convert(&page.Items[i])
			if !isGang(&job) {
				continue
			}
			all = append(all, &job)
			if !o.Objects {
				continue
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&page.Items[i])
			if err != nil {
				return nil, err
			}
			job.Object = &unstructured.Unstructured{Object: content}
			job.Object.SetGroupVersionKind(gvk)
		}
	}
	return all, nil
}

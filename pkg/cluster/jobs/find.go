package jobs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// split takes KIND/NAME apart; kind is empty for a NAME alone, and for job/NAME.
func split(arg string) (kind gang.JobReader, name string, err error) {
	typed, name, ok := strings.Cut(arg, "/")
	if !ok {
		return gang.JobReader{}, arg, nil
	}
	if typed == "job" || typed == "jobs" {
		return gang.JobReader{}, name, nil
	}
	kind, known := kinds.ByName(typed)
	if !known {
		return gang.JobReader{}, "", failure.Usagef("%s: gangctl knows no kind of job %q", arg, typed).
			WithHint("the kinds are: %s", strings.Join(kinds.Names(), ", "))
	}
	return kind, name, nil
}

// Find gets the job of a name, whatever its kind; KIND/NAME is one of that kind. The kinds are read at the same time, and one
// that the cluster does not serve is passed over. The error is a [gang.JobNotFoundError] if there is no such job, and a
// [gang.AmbiguousJobError] if several kinds have one.
func Find(ctx context.Context, client *kube.Client, namespace, arg string) (*gang.Job, error) {
	only, name, err := split(arg)
	if err != nil {
		return nil, err
	}
	readers := kinds.Readers()
	if only.Read != nil {
		readers = []gang.JobReader{only}
	}
	found := make([]*gang.Job, len(readers))
	refused := make([]error, len(readers))
	atOnce(len(readers), func(i int) { found[i], refused[i] = get(ctx, client, readers[i], namespace, name) })
	for _, err := range refused {
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	missing := &gang.JobNotFoundError{Kind: only.Kind, Namespace: namespace, Name: name, Unreadable: unreadable(readers, refused)}
	job, err := choose(missing, readers, found, refused)
	return job, needingAll(client, err, readers, refused)
}

// needingAll adds, to a refusal and to the error that no job was found, the rights to all kinds that were refused, of those that the cluster has.
func needingAll(client *kube.Client, err error, readers []gang.JobReader, refused []error) error {
	var missing *gang.JobNotFoundError
	if !apierrors.IsForbidden(err) && !errors.As(err, &missing) {
		return err
	}
	var denied []error
	for i, r := range readers {
		if !apierrors.IsForbidden(refused[i]) {
			continue
		}
		if served, unknown := serves(client, r); unknown != nil || served {
			denied = append(denied, refused[i])
		}
	}
	return failure.Lacking(err, denied...)
}

// unreadable are the kinds, in the plural, that the user may not get.
func unreadable(readers []gang.JobReader, refused []error) []string {
	var names []string
	for i, r := range readers {
		if apierrors.IsForbidden(refused[i]) {
			names = append(names, r.Title()+"s")
		}
	}
	return names
}

// choose picks the one job that was found, or reports why there is none. A cluster without any of the kinds, or a user without a
// right to any, is reported as such: nothing was looked up, so nothing is missing.
func choose(missing *gang.JobNotFoundError, readers []gang.JobReader, found []*gang.Job, refused []error) (*gang.Job, error) {
	var forbidden, nowhere error
	looked := false
	for i, r := range readers {
		switch err := refused[i]; {
		case found[i] != nil:
		case apierrors.IsForbidden(err):
			forbidden = cmp.Or(forbidden, err)
		case failure.NotServed(err):
			nowhere = moreTelling(r, nowhere, err)
		case r.Group == "batch" && len(readers) > 1: // served by every cluster: its absence shows nothing about the others
		default:
			looked = true
		}
	}
	all := slices.DeleteFunc(found, func(job *gang.Job) bool { return job == nil })
	all = joinAll(all, nil)
	switch {
	case len(all) > 1:
		return nil, &gang.AmbiguousJobError{Jobs: all}
	case len(all) == 1:
		return all[0], nil
	case looked:
		return nil, missing
	}
	return nil, cmp.Or(forbidden, nowhere, error(missing))
}

// atOnce does n things at the same time, and returns when all are done: which of them fails first has no meaning.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// get gets the job of a kind, under the first version that is served. A Job that is no gang is none of ours: it is absent.
func get(ctx context.Context, client *kube.Client, r gang.JobReader, namespace, name string) (*gang.Job, error) {
	var first error
	for _, version := range r.Versions {
		gvr := schema.GroupVersionResource{Group: r.Group, Version: version, Resource: r.Resource}
		op := failure.Op{Verb: "get", Resource: gvr, Kind: r.Kind, Namespace: namespace, Name: name}
		object, err := client.Dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			job, err := Read(object)
			if err == nil && !isGang(job) {
				err = op.Wrap(apierrors.NewNotFound(gvr.GroupResource(), name))
				return nil, err
			}
			if err == nil {
				err = Join(ctx, client, job)
			}
			return job, err
		}
		first = cmp.Or(first, op.Wrap(err))
		if !failure.NotServed(err) {
			return nil, op.Wrap(err)
		}
	}
	return nil, first
}

// moreTelling is which of two kinds that are not served is to be reported: the first, but for the Job that every cluster serves.
func moreTelling(r gang.JobReader, first, next error) error {
	if r.Group == "batch" {
		return next
	}
	return cmp.Or(first, next)
}

package jobs

import (
	"context"
	"errors"
	"fmt"
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

// NotFoundError says that no job has the name.
type NotFoundError struct {
	Namespace, Name string
	// Unseen are the kinds, in the plural, among which the user may not look.
	Unseen []string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("get job %s/%s: not found", e.Namespace, e.Name)
	if len(e.Unseen) > 0 {
		text += "; you may not look for it among " + strings.Join(e.Unseen, ", ")
	}
	return text
}

// Split takes KIND/NAME apart; kind is empty for a NAME alone, and for job/NAME.
func Split(word string) (kind gang.JobReader, name string, err error) {
	typed, name, ok := strings.Cut(word, "/")
	if !ok {
		return gang.JobReader{}, word, nil
	}
	if typed == "job" || typed == "jobs" {
		return gang.JobReader{}, name, nil
	}
	kind, known := kinds.ByWord(typed)
	if !known {
		return gang.JobReader{}, "", failure.Usagef("%s: gangctl knows no kind of job %q", word, typed).
			WithHint("the kinds are: tfjob, pytorchjob, mpijob, batchjob")
	}
	return kind, name, nil
}

// Find gets the job of a name, whatever its kind; KIND/NAME is one of that kind. The kinds are asked for at the same time, and
// one that the cluster does not serve is passed over. The error is a [NotFoundError] if there is no such job.
func Find(ctx context.Context, client *kube.Client, namespace, word string) (*gang.Job, error) {
	only, name, err := Split(word)
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
		if err != nil && !apierrors.IsForbidden(err) && !unserved(err) && !absent(err) {
			return nil, err
		}
	}
	return choose(namespace, name, readers, found, refused)
}

// choose picks the one job that was found, or says why there is none.
func choose(namespace, name string, readers []gang.JobReader, found []*gang.Job, refused []error) (*gang.Job, error) {
	var job *gang.Job
	missing := &NotFoundError{Namespace: namespace, Name: name}
	var forbidden, nowhere error
	looked := false
	for i, r := range readers {
		switch err := refused[i]; {
		case found[i] != nil && job != nil:
			return nil, failure.Usagef("%s/%s is the name of a %s and of a %s", namespace, name, job.Kind.Kind, r.Kind).
				WithHint("say which: %s/%s or %s/%s", job.Reader.Words[0], name, r.Words[0], name)
		case found[i] != nil:
			job = found[i]
		case apierrors.IsForbidden(err):
			missing.Unseen = append(missing.Unseen, r.Kind+"s")
			forbidden = firstOf(forbidden, err)
		case unserved(err):
			nowhere = firstOf(nowhere, err)
		case r.Group == "batch" && len(readers) > 1: // served by every cluster: it says nothing of the others
		default:
			looked = true
		}
	}
	switch {
	case job != nil:
		return job, nil
	case looked:
		return nil, missing
	case forbidden != nil:
		return nil, forbidden
	case nowhere != nil:
		return nil, nowhere
	}
	return nil, missing
}

// atOnce does n things at the same time, and returns when all are done: which of them fails first says nothing.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// get gets the job of a kind, under the first version that is served. A Job that is no gang is none of ours: it is absent.
func get(ctx context.Context, client *kube.Client, r gang.JobReader, namespace, name string) (*gang.Job, error) {
	var first error
	for _, version := range versions(r) {
		gvr := schema.GroupVersionResource{Group: r.Group, Version: version, Resource: r.Resource}
		op := failure.Op{Verb: "get", Resource: gvr, Kind: r.Kind, Namespace: namespace, Name: name}
		object, err := client.Dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			job, err := Read(object)
			if err == nil && !isGang(job) {
				err = op.Wrap(apierrors.NewNotFound(gvr.GroupResource(), name))
				return nil, err
			}
			return job, err
		}
		first = firstOf(first, op.Wrap(err))
		if !unserved(err) {
			return nil, op.Wrap(err)
		}
	}
	return nil, first
}

// unserved reports whether an error says that the cluster does not have a resource: a 404 that names no object.
func unserved(err error) bool { return apierrors.IsNotFound(err) && !absent(err) }

// absent reports whether an error says that an object is not there.
func absent(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != ""
}

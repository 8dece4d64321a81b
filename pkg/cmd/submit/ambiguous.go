package submit

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

const (
	// resolveEvery and resolveTimeout are how often and how long it is looked for what became of a create without an answer.
	resolveEvery   = 500 * time.Millisecond
	resolveTimeout = 5 * time.Second
)

// lostError is that of a create of which it could not be found out whether the object is stored.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// ambiguous reports whether a request that failed may have been done all the same.
func ambiguous(err error) bool { return failure.OutcomeOf(err) == failure.OutcomeAmbiguous }

// resolve finds out what became of the create of a job whose answer, lost, is ambiguous. A job that is there and carries what this command wrote on
// it is its own. One that is not there may still come: it is created again, and one of the two finds the name taken.
func (c *creator) resolve(ctx context.Context, job *unstructured.Unstructured, lost error) (stored *unstructured.Unstructured, err error) {
	at := c.at(apply.ResourceOf(job), job)
	limited, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	err = lostError{lost} // until more is known
	_ = wait.PollUntilContextCancel(limited, resolveEvery, true, func(limited context.Context) (bool, error) {
		there, failed := at.Get(limited, job.GetName(), metav1.GetOptions{})
		switch {
		case failed == nil && ours(there, job):
			fmt.Fprintf(c.io.ErrOut, "note: %s; %s is stored all the same\n", failure.From(lost).Message, named(job))
			stored, err = there, nil
			return true, nil
		case failed == nil:
			err = apierrors.NewAlreadyExists(apply.ResourceOf(job).GroupResource(), job.GetName())
			return true, nil
		case !apierrors.IsNotFound(failed):
			err = lostError{lost}
			return !ambiguous(failed), nil
		}
		again, failed := c.post(ctx, job, false)
		if apierrors.IsAlreadyExists(failed) || ambiguous(failed) {
			return false, nil // the next look shows more; where there is no time for one, the job may exist
		}
		stored, err = again, failed
		return true, nil
	})
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // interrupted
	}
	return stored, err
}

// ours reports whether a job that is stored carries the command line, the hash and the submitter that were written on one to be created.
func ours(stored, job *unstructured.Unstructured) bool {
	some := false
	for _, key := range []string{provenance.CommandAnnotation, provenance.HashAnnotation, provenance.UserAnnotation} {
		value := job.GetAnnotations()[key]
		if stored.GetAnnotations()[key] != value {
			return false
		}
		some = some || value != ""
	}
	return some && stored.GetDeletionTimestamp() == nil
}

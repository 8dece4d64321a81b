// Package outcome reads from the error of a request whether the API server has done what was requested. Who writes to a cluster decides by it
// whether to look, to request it again, or to do something else.
package outcome

import (
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Refused reports whether the API server answered that it did not do what was requested, because of the request: a code of 4xx. A timeout of
// the request (408) is none, as what was requested may still be done; nor is an error of the server (5xx), or of the connection.
//
// A conflict (409) is a refusal. Where it may be with an earlier request of one's own, the caller looks.
func Refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// Transient reports whether the same request may succeed after this error: it was not refused, or only because there are too many of them.
func Transient(err error) bool {
	return err != nil && (!Refused(err) || apierrors.IsTooManyRequests(err))
}

// Untried reports whether a dry run was refused because an admission webhook takes none. That shows nothing of what it would answer to the request itself.
func Untried(err error) bool { return failure.OutcomeOf(err) == failure.OutcomeUntried }

// Replaced reports whether a patch with the UID of an object was refused because another object has its name by now. To the API server that is a change
// of the UID, which is invalid; a conflict is with another client's change of the same object. Deletions and evictions whose precondition is the UID meet
// a conflict instead.
func Replaced(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

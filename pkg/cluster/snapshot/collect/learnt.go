package collect

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// learnt is what an answer to a create shows of the object.
type learnt int

const (
	// learntNothing: the server or the connection failed, something between them answered, or the namespace is not there.
	learntNothing learnt = iota
	learntAccepted
	learntRefused
	learntRights // only that the caller may not create it
	learntExists // an object has the name
)

// admission recognises a refusal by admission, which may have any status, and a webhook without whose answer nothing is accepted.
var admission = regexp.MustCompile(`(?:admission webhook|ValidatingAdmissionPolicy) .*denied (?:the )?request|failed calling (?:admission )?webhook`)

// learntFrom is what the answer to a create shows. A refusal counts only where the API server evaluated the object: a status such as 500, 503 or
// 409 is about the server, and the next create may be accepted.
func learntFrom(err error) learnt {
	if err == nil {
		return learntAccepted
	}
	status := statusOf(err)
	switch {
	case status == nil:
		return learntNothing
	case admission.MatchString(status.Message):
		return learntRefused
	case apierrors.IsAlreadyExists(err):
		return learntExists
	case apierrors.IsNotFound(err):
		if status.Details != nil && status.Details.Kind == "namespaces" {
			return learntNothing
		}
		return learntRefused // its kind is not served, or what it names is not there
	case apierrors.IsUnexpectedServerError(err):
		return learntNothing // not of the API server, but of a proxy
	case apierrors.IsForbidden(err) && strings.Contains(status.Message, "cannot create resource"):
		return learntRights
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return learntRefused
	}
	return learntNothing
}

// statusOf is the status that the API server answered; nil where it did not.
func statusOf(err error) *metav1.Status {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) || answered.Status().Code < http.StatusBadRequest {
		return nil
	}
	status := answered.Status()
	return &status
}

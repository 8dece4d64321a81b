package failure

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Outcome is what the answer to a create shows: of the object, and of whether it is stored.
type Outcome int

// The outcomes. What Transient reports of an error is another matter: whether the API server may answer the next request.
const (
	OutcomeAccepted Outcome = iota
	// OutcomeRefused: the API server evaluated the object, and does not accept it. It will not accept it next time.
	OutcomeRefused
	// OutcomeNoRight: the caller may not create it, which shows nothing of the object.
	OutcomeNoRight
	// OutcomeTaken: an object has the name.
	OutcomeTaken
	// OutcomeNotStored: it was not evaluated, and is not stored: the request was not sent, or answered without a look at the object. The
	// next one may be accepted.
	OutcomeNotStored
	// OutcomeUntried: an admission webhook that takes no dry runs keeps the object from being tried. Only a create that is none shows more.
	OutcomeUntried
	// OutcomeAmbiguous: it may be stored all the same: the connection was lost, a proxy answered, or the API server gave up waiting
	// for the store.
	OutcomeAmbiguous
	// OutcomeInterrupted: the caller did not wait for the answer.
	OutcomeInterrupted
)

// Unseen reports whether an outcome shows nothing of the object, nor of who may create it.
func (o Outcome) Unseen() bool {
	return o == OutcomeNotStored || o == OutcomeAmbiguous || o == OutcomeInterrupted
}

// admission recognises a refusal by admission, which may have any status, and a webhook without whose answer nothing is accepted.
var admission = regexp.MustCompile(`(?:admission webhook|ValidatingAdmissionPolicy) .*denied (?:the )?request|failed calling (?:admission )?webhook`)

// noDryRun recognises what the API server itself answers to a dry run that a webhook may not see, because of its sideEffects.
var noDryRun = regexp.MustCompile(`^admission webhook "[^"]*" does not support dry run$`)

// OutcomeOf is what the answer to a create shows. A refusal counts only where the API server evaluated the object: a status such as 500, 503 or
// 409 is about the server.
func OutcomeOf(err error) Outcome {
	answer, answered := status(err)
	switch {
	case err == nil:
		return OutcomeAccepted
	case errors.Is(err, context.Canceled):
		return OutcomeInterrupted
	case Unauthenticated(err), neverSent(err):
		return OutcomeNotStored
	case !answered || answer.Code < http.StatusBadRequest:
		return OutcomeAmbiguous
	case apierrors.IsBadRequest(err) && noDryRun.MatchString(answer.Message):
		return OutcomeUntried
	case admission.MatchString(answer.Message):
		return OutcomeRefused
	case apierrors.IsAlreadyExists(err):
		return OutcomeTaken
	case NamespaceMissing(err):
		return OutcomeNotStored
	case apierrors.IsNotFound(err):
		return OutcomeRefused // its kind is not served, or what it names is not there
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return OutcomeAmbiguous
	case apierrors.IsUnexpectedServerError(err):
		return OutcomeNotStored // not of the API server, but of a proxy
	case apierrors.IsForbidden(err) && strings.Contains(answer.Message, "cannot create resource"):
		return OutcomeNoRight
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return OutcomeRefused
	}
	return OutcomeNotStored
}

// neverSent reports whether a request failed before it was sent: there was no connection, or none that is trusted.
func neverSent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial" || misled(err)
}

// misled reports whether a request failed because its address leads nowhere, or to a server that is not trusted.
func misled(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) || distrusted(err)
}

// distrusted reports whether a request failed because of the server's certificate. That does not pass by itself.
func distrusted(err error) bool {
	var invalid x509.CertificateInvalidError
	var unknownCA x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	return errors.As(err, &invalid) || errors.As(err, &unknownCA) || errors.As(err, &wrongHost)
}

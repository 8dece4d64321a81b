package onemember

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upgrading stands before what a server said that did not open a stream.
const upgrading = "unable to upgrade connection: "

// Refusal gives an error its meaning back that a server answered to the wish for a stream: client-go keeps the words only.
func Refusal(err error) error {
	if err == nil {
		return nil
	}
	_, text, found := strings.Cut(err.Error(), upgrading)
	if !found || !strings.Contains(text, "cannot create resource") {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text}}
}

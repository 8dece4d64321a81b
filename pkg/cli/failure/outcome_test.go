package failure

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the answer to a create shows. Nothing that may be stored passes for refused, and nothing that was never sent for stored.
func TestOutcomeOf(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	internal := func(text string) error { return apierrors.NewInternalError(errors.New(text)) }
	proxy := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "POST", pods, "a", "<html>", 0, true)
	}
	for name, tt := range map[string]struct {
		err  error
		want Outcome
	}{
		"accepted":                     {nil, OutcomeAccepted},
		"interrupted":                  {request(context.Canceled), OutcomeInterrupted},
		"invalid":                      {fmt.Errorf("create: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)), OutcomeRefused},
		"bad request":                  {apierrors.NewBadRequest("no"), OutcomeRefused},
		"quota":                        {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: q")), OutcomeRefused},
		"webhook":                      {internal(`admission webhook "w" denied the request: no`), OutcomeRefused},
		"webhook without dry runs":     {apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), OutcomeUntried},
		"webhook that speaks of them":  {apierrors.NewBadRequest(`admission webhook "w" denied the request: admission webhook "v" does not support dry run`), OutcomeRefused},
		"webhook that does not answer": {internal(`failed calling webhook "w": timeout`), OutcomeRefused},
		"policy":                       {apierrors.NewConflict(pods, "a", errors.New(`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`)), OutcomeRefused},
		"kind that is not served":      {proxy(http.StatusNotFound), OutcomeRefused},
		"no right":                     {apierrors.NewForbidden(pods, "a", errors.New(`User "eve" cannot create resource "pods"`)), OutcomeNoRight},
		"taken":                        {apierrors.NewAlreadyExists(pods, "a"), OutcomeTaken},
		"no namespace":                 {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), OutcomeNotStored},
		"no login":                     {apierrors.NewUnauthorized("who?"), OutcomeNotStored},
		"no credentials":               {request(errors.New("getting credentials: exec: executable aws failed with exit code 7")), OutcomeNotStored},
		"busy":                         {apierrors.NewTooManyRequests("busy", 1), OutcomeNotStored},
		"conflict":                     {apierrors.NewConflict(pods, "a", errors.New("changed")), OutcomeNotStored},
		"refused by a proxy":           {proxy(http.StatusForbidden), OutcomeNotStored},
		"no connection":                {request(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), OutcomeNotStored},
		"no such host":                 {request(&net.DNSError{Err: "no such host", Name: "x"}), OutcomeNotStored},
		"not trusted":                  {request(x509.UnknownAuthorityError{}), OutcomeNotStored},
		"connection lost":              {request(io.ErrUnexpectedEOF), OutcomeAmbiguous},
		"connection reset":             {request(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), OutcomeAmbiguous},
		"no answer in time":            {request(context.DeadlineExceeded), OutcomeAmbiguous},
		"store does not answer":        {apierrors.NewTimeoutError("etcd", 1), OutcomeAmbiguous},
		"store fails":                  {internal("etcd"), OutcomeAmbiguous},
		"starting":                     {apierrors.NewServiceUnavailable("starting"), OutcomeAmbiguous},
		"bad gateway":                  {proxy(http.StatusBadGateway), OutcomeAmbiguous},
	} {
		if got := OutcomeOf(tt.err); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestOutcome(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name               string
		err                error
		refused, transient bool
	}{
		{"no error", nil, false, false},
		{"a connection that ended", errors.New("EOF"), false, true},
		{"a deadline", context.DeadlineExceeded, false, true},
		{"a missing right", apierrors.NewForbidden(pods, "a", nil), true, false},
		{"an expired token", apierrors.NewUnauthorized("expired"), true, false},
		{"a bad request", apierrors.NewBadRequest("no"), true, false},
		{"an invalid object", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), true, false},
		{"an object that is gone", apierrors.NewNotFound(pods, "a"), true, false},
		{"a conflict", apierrors.NewConflict(pods, "a", nil), true, false},
		{"an object too large", apierrors.NewRequestEntityTooLargeError("3 MiB"), true, false},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true, true},
		{"a request that took too long to arrive", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 408}}, false, true},
		{"a storage that timed out", apierrors.NewTimeoutError("etcd", 1), false, true},
		{"a server that timed out", apierrors.NewServerTimeout(pods, "patch", 1), false, true},
		{"an internal error", apierrors.NewInternalError(errors.New("etcd")), false, true},
		{"a server that ends", apierrors.NewServiceUnavailable("shutting down"), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range []error{c.err, wrapped(c.err)} {
				if got := Refused(err); got != c.refused {
					t.Errorf("Refused(%v) = %v", err, got)
				}
				if got := Transient(err); got != c.transient {
					t.Errorf("Transient(%v) = %v", err, got)
				}
			}
		})
	}
}

func TestUntried(t *testing.T) {
	for message, want := range map[string]bool{
		`admission webhook "audit.example.com" does not support dry run`:         true,
		`admission webhook "audit.example.com" denied the request: it is frozen`: false,
	} {
		for _, err := range []error{apierrors.NewBadRequest(message), wrapped(apierrors.NewBadRequest(message))} {
			if Untried(err) != want {
				t.Errorf("%v: Untried is not %v", err, want)
			}
		}
	}
	if Untried(nil) || Untried(errors.New("EOF")) {
		t.Error("what is no answer of a webhook is")
	}
}

func TestReplaced(t *testing.T) {
	invalid := func(of string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{field.Invalid(field.NewPath("metadata").Child(of), "x", "field is immutable")})
	}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"another UID", invalid("uid"), true},
		{"another field", invalid("name"), false},
		{"no field", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), false},
		{"a conflict", apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil), false},
		{"a connection that ended", errors.New("EOF"), false},
	} {
		if Replaced(c.err) != c.want || Replaced(wrapped(c.err)) != c.want {
			t.Errorf("%s: Replaced is not %v", c.name, c.want)
		}
	}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("suspend TFJob llama: %w", err)
}

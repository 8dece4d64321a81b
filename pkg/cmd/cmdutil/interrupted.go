package cmdutil

import (
	"errors"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// errSent is the error of a request that was interrupted when it may have been sent.
var errSent = errors.New("interrupted; it may have been done")

// Sent is the error of an operation whose request was interrupted when it may have been sent.
func Sent(op failure.Op) error {
	return failure.WithCode(failure.CodeInterrupted, "%s: %w", op, errSent)
}

// Untried are the errors of a command that was interrupted at the first of some names: that one was not tried, either, unless its request may have been sent.
func Untried(err error, names []string) []error {
	var failures []error
	if errors.Is(err, errSent) {
		failures, names = append(failures, err), names[1:]
	}
	if len(names) > 0 {
		failures = append(failures, failure.WithCode(failure.CodeInterrupted, "interrupted; not tried: %s", strings.Join(names, ", ")))
	}
	return failures
}

// Package failure turns whatever stops a command into one sentence with what failed on which object and why, a hint
// with the next command to type, and an exit code.
package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// Code is an exit code of gangctl.
type Code int

// The exit codes.
const (
	CodeOK          Code = 0
	CodeError       Code = 1
	CodeUsage       Code = 2
	CodeTimedOut    Code = 4
	CodeJobFailed   Code = 9
	CodeInterrupted Code = 130 // 128 + SIGINT, as shells report it
)

// Error ends a command.
type Error struct {
	// Message is one lower-case sentence without a full stop: operation and object, then the server's reason.
	Message string
	// Hint is the next thing to do; it may be empty or span lines.
	Hint string
	// Code is the exit code.
	Code Code

	cause error
	lacks rules // what the hint requests from an administrator
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that caused this one, if any.
func (e *Error) Unwrap() error { return e.cause }

// WithHint returns a copy of the error with another hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint, c.lacks = fmt.Sprintf(format, args...), rules{}
	return &c
}

// Errorf is a failure with exit code 1; %w keeps a cause.
func Errorf(format string, args ...any) *Error { return newf(CodeError, format, args...) }

// Usagef is a mistake on the command line: exit code 2.
func Usagef(format string, args ...any) *Error { return newf(CodeUsage, format, args...) }

// WithCode is a failure with the given exit code.
func WithCode(code Code, format string, args ...any) *Error { return newf(code, format, args...) }

func newf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Message: err.Error(), Code: code, cause: errors.Unwrap(err)}
}

// Interrupted reports whether an error is that the user has interrupted the command.
func Interrupted(err error) bool { return err != nil && From(err).Code == CodeInterrupted }

// From explains any error: one that is a failure already is kept, an answer of an API server and a network error get a
// sentence and a hint, everything else keeps its text. From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return &Error{Message: err.Error(), Hint: known.Hint, Code: known.Code, cause: err, lacks: known.lacks}
	}
	if errors.Is(err, context.Canceled) {
		return &Error{Message: "interrupted", Code: CodeInterrupted, cause: err}
	}
	e := &Error{Message: err.Error(), Code: CodeError, cause: err}
	var op *opError
	if !errors.As(err, &op) {
		op = &opError{err: err}
	}
	explain(e, op)
	return e
}

// All joins the failures of several objects: every message on a line of its own, the hint of the first that has one, or all rules that are
// missing, and their exit code, or 1 if they differ. It returns nil if every error is nil.
func All(errs ...error) error {
	var all *Error
	for _, err := range errs {
		e := From(err)
		switch {
		case e == nil:
		case all == nil:
			all = e
		default:
			all.Message += "\n" + e.Message
			if e.Code != all.Code {
				all.Code = CodeError
			}
			switch {
			case all.Hint == "":
				all.Hint, all.lacks = e.Hint, e.lacks
			case len(all.lacks.ops) > 0 && len(e.lacks.ops) > 0:
				all = all.needing(e.lacks.ops...)
			}
			all.cause = errors.Join(all.cause, err)
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// AllBut is All of a command that has done what was requested to some objects: its exit code is none that reports that nothing was done.
func AllBut(done int, errs ...error) error {
	all := From(All(errs...))
	switch {
	case all == nil:
		return nil
	case done > 0 && all.Code == CodeUsage:
		all.Code = CodeError
	}
	return all
}

// Print writes `error: …` and `hint: …` to standard error. A message of several lines gets one `error:` a line. An error
// without a message only carries an exit code: the answer has been printed. Commands in a hint are completed.
func Print(s *iostreams.IOStreams, e *Error) {
	if e.Message == "" {
		return
	}
	for line := range strings.SplitSeq(e.Message, "\n") {
		fmt.Fprintf(s.ErrOut, "%s %s\n", s.ErrStyled(iostreams.Red, "error:"), line)
	}
	if e.Hint != "" {
		fmt.Fprintf(s.ErrOut, "%s %s\n", s.ErrStyled(iostreams.Cyan, "hint:"), s.Commands(e.Hint))
	}
}

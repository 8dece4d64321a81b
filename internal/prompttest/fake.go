// Package prompttest fakes the user at the prompt in tests: a Prompter with prepared answers, and a pseudo-terminal with scripted replies.
package prompttest

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Fake is a Prompter that returns prepared answers in their order. One without answers is not available, as without a terminal.
type Fake struct {
	// Texts answer Input; Choices answer Confirm.
	Texts   []string
	Choices []bool
	// Interrupt has the user press Ctrl-C once all Choices are given.
	Interrupt bool
	// Prompts are the messages of the prompts so far.
	Prompts []string
}

// Available reports whether there are answers left.
func (f *Fake) Available() bool {
	return f != nil && (f.Interrupt || len(f.Texts)+len(f.Choices) > 0)
}

// Confirm returns the next choice.
func (f *Fake) Confirm(message string) (bool, error) {
	f.Prompts = append(f.Prompts, message)
	if len(f.Choices) == 0 && f.Interrupt {
		return false, failure.WithCode(failure.CodeInterrupted, "interrupted")
	}
	if len(f.Choices) == 0 {
		return false, failure.Errorf("no prepared answer to %q", message)
	}
	answer := f.Choices[0]
	f.Choices = f.Choices[1:]
	return answer, nil
}

// Input returns the next text.
func (f *Fake) Input(message string) (string, error) {
	f.Prompts = append(f.Prompts, message)
	if len(f.Texts) == 0 {
		return "", failure.Errorf("no prepared answer to %q", message)
	}
	answer := f.Texts[0]
	f.Texts = f.Texts[1:]
	return answer, nil
}

// InputValid returns the next text, or the fallback for an empty one. A text that check rejects is an error: a user would be prompted
// again.
func (f *Fake) InputValid(message, fallback string, check func(string) error) (string, error) {
	answer, err := f.Input(message)
	if err != nil {
		return "", err
	}
	if answer == "" {
		answer = fallback
	}
	return answer, check(answer)
}

// Choose returns the next text, which must be one of the options, or the first option for an empty one.
func (f *Fake) Choose(message string, options []string) (string, error) {
	answer, err := f.Input(message)
	switch {
	case err != nil:
		return "", err
	case answer == "":
		return options[0], nil
	case !slices.Contains(options, answer):
		return "", failure.Errorf("%q: %q is none of %q", message, answer, options)
	}
	return answer, nil
}

// Package prompttest stands in for the person in front of the terminal, in tests.
package prompttest

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Answers is a Prompter that gives prepared answers in their order. One without answers is no terminal.
type Answers struct {
	// Texts answer Input; Choices answer Confirm.
	Texts   []string
	Choices []bool
	// Asked are the prompts so far.
	Asked []string
}

// Available reports whether there are answers left.
func (a *Answers) Available() bool { return a != nil && len(a.Texts)+len(a.Choices) > 0 }

// Confirm gives the next choice.
func (a *Answers) Confirm(question string) (bool, error) {
	a.Asked = append(a.Asked, question)
	if len(a.Choices) == 0 {
		return false, failure.Errorf("nobody answers %q", question)
	}
	answer := a.Choices[0]
	a.Choices = a.Choices[1:]
	return answer, nil
}

// Input gives the next text.
func (a *Answers) Input(question string) (string, error) {
	a.Asked = append(a.Asked, question)
	if len(a.Texts) == 0 {
		return "", failure.Errorf("nobody answers %q", question)
	}
	answer := a.Texts[0]
	a.Texts = a.Texts[1:]
	return answer, nil
}

// InputValid gives the next text, or the fallback for an empty one. A text that check does not take is an error: a person would be prompted
// again.
func (a *Answers) InputValid(question, fallback string, check func(string) error) (string, error) {
	answer, err := a.Input(question)
	if err != nil {
		return "", err
	}
	if answer == "" {
		answer = fallback
	}
	return answer, check(answer)
}

// Choose gives the next text, which must be one of the options, or the first option for an empty one.
func (a *Answers) Choose(question string, options []string) (string, error) {
	answer, err := a.Input(question)
	switch {
	case err != nil:
		return "", err
	case answer == "":
		return options[0], nil
	case !slices.Contains(options, answer):
		return "", failure.Errorf("%q: %q is none of %q", question, answer, options)
	}
	return answer, nil
}

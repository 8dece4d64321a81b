// Package prompttest stands in for the person in front of the terminal, in tests.
package prompttest

import "github.com/gangctl/gangctl/pkg/failure"

// Answers is a Prompter that gives prepared answers in their order. One without answers is nobody.
type Answers struct {
	// Texts answer Input; Choices answer Confirm.
	Texts   []string
	Choices []bool
	// Asked are the questions so far.
	Asked []string
}

// Available tells whether there are answers left.
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

// Package prompt asks the person in front of the terminal.
package prompt

// Prompter asks questions. Answers never come from a pipe: who asks looks at Available first, and says in an error which flag
// answers the question instead.
type Prompter interface {
	// Available tells whether somebody is there: standard input and standard error are terminals.
	Available() bool
	// Confirm asks yes or no; the answer of somebody who just presses enter is no.
	Confirm(question string) (bool, error)
	// Input asks for a line of text.
	Input(question string) (string, error)
	// Ask asks for a line of text until check takes it; the answer of somebody who just presses enter is the fallback.
	Ask(question, fallback string, check func(string) error) (string, error)
	// Choose asks for one of the options; the first is that of somebody who just presses enter.
	Choose(question string, options []string) (string, error)
}

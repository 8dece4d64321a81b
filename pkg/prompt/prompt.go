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
}

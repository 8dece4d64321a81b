// Package prompt prompts the user at the terminal.
package prompt

// Prompter prompts. Answers never come from a pipe: a caller looks at Available first, and names in an error which flag
// replaces the prompt.
type Prompter interface {
	// Available reports whether the user can be prompted: standard input and standard error are terminals.
	Available() bool
	// Confirm prompts for yes or no; enter alone is no.
	Confirm(message string) (bool, error)
	// Input prompts for a line of text.
	Input(message string) (string, error)
	// InputValid prompts for a line of text until check accepts it; enter alone is the fallback.
	InputValid(message, fallback string, check func(string) error) (string, error)
	// Choose prompts for one of the options; enter alone is the first.
	Choose(message string, options []string) (string, error)
}

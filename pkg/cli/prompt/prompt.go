// Package prompt prompts the user at the terminal.
package prompt

import (
	"errors"
	"fmt"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// Prompter prompts. Answers never come from a pipe: a caller looks at Available first, and names in an error which flag
// replaces the prompt.
type Prompter interface {
	// Available reports whether the user can be prompted: standard input and standard error are terminals, and not dumb ones.
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

// New returns a Prompter on the streams of a run. Prompts go to standard error: standard output is for data.
func New(io *iostreams.IOStreams) Prompter { return &surveyPrompter{io: io} }

type surveyPrompter struct {
	io   *iostreams.IOStreams
	keys *keyboard // nil before the first prompt
}

func (p *surveyPrompter) Available() bool { return p.io.CanPrompt() }

func (p *surveyPrompter) Confirm(message string) (bool, error) {
	answer := false
	err := p.prompt(&survey.Confirm{Message: iostreams.Escape(message)}, &answer)
	return answer, err
}

func (p *surveyPrompter) Input(message string) (string, error) {
	answer := ""
	err := p.prompt(&survey.Input{Message: iostreams.Escape(message)}, &answer)
	return answer, err
}

func (p *surveyPrompter) InputValid(message, fallback string, check func(string) error) (string, error) {
	answer := ""
	err := p.prompt(&survey.Input{Message: iostreams.Escape(message), Default: iostreams.Escape(fallback)}, &answer, survey.WithValidator(func(value any) error {
		text, _ := value.(string)
		return check(text)
	}))
	return answer, err
}

func (p *surveyPrompter) Choose(message string, options []string) (string, error) {
	shown, answer := make([]string, len(options)), 0
	for i, option := range options {
		shown[i] = iostreams.Escape(option)
	}
	if err := p.prompt(&survey.Select{Message: iostreams.Escape(message), Options: shown}, &answer); err != nil {
		return "", err
	}
	return options[answer], nil
}

// prompt has survey draw on the terminal, for which it needs the files behind the streams.
func (p *surveyPrompter) prompt(widget survey.Prompt, answer any, more ...survey.AskOpt) error {
	in, inOK := p.io.In.(terminal.FileReader)
	out, outOK := p.io.VerbatimErrOut().(terminal.FileWriter)
	if !inOK || !outOK || !p.Available() {
		return failure.Errorf("cannot prompt: stdin and stderr must be terminals that can move their cursor")
	}
	if p.keys == nil {
		p.keys = &keyboard{FileReader: in, clock: p.io.Clock, interrupt: p.io.Interrupted()}
	}
	err := survey.AskOne(widget, answer, append(more, survey.WithStdio(p.keys, screen{out, p.keys}, out))...)
	if p.keys.failed != nil {
		err = p.keys.failed
	}
	switch {
	case errors.Is(err, terminal.InterruptErr):
		return failure.WithCode(failure.CodeInterrupted, "interrupted")
	case errors.Is(err, errNoAnswer):
		return failure.Errorf("cannot prompt: %w the query for the position of its cursor", err).
			WithHint("give what it prompts for on the command line, as a script does; with TERM=dumb in the environment no command prompts")
	case err != nil:
		return fmt.Errorf("prompt: %w", err)
	}
	return nil
}

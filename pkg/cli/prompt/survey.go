package prompt

import (
	"errors"
	"fmt"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// New returns a Prompter on the streams of a run. Questions go to standard error: standard output is for data.
func New(io *iostreams.IOStreams) Prompter { return asker{io} }

type asker struct{ io *iostreams.IOStreams }

func (a asker) Available() bool { return a.io.CanPrompt() }

func (a asker) Confirm(question string) (bool, error) {
	answer := false
	err := a.ask(&survey.Confirm{Message: question}, &answer)
	return answer, err
}

func (a asker) Input(question string) (string, error) {
	answer := ""
	err := a.ask(&survey.Input{Message: question}, &answer)
	return answer, err
}

func (a asker) Ask(question, fallback string, check func(string) error) (string, error) {
	answer := ""
	err := a.ask(&survey.Input{Message: question, Default: fallback}, &answer, survey.WithValidator(func(value any) error {
		text, _ := value.(string)
		return check(text)
	}))
	return answer, err
}

func (a asker) Choose(question string, options []string) (string, error) {
	answer := ""
	err := a.ask(&survey.Select{Message: question, Options: options}, &answer)
	return answer, err
}

// ask has survey draw on the terminal, for which it needs the files behind the streams.
func (a asker) ask(question survey.Prompt, answer any, more ...survey.AskOpt) error {
	in, inOK := a.io.In.(terminal.FileReader)
	out, outOK := a.io.ErrOut.(terminal.FileWriter)
	if !inOK || !outOK || !a.Available() {
		return failure.Errorf("there is nobody to ask: standard input and standard error must be terminals")
	}
	err := survey.AskOne(question, answer, append(more, survey.WithStdio(in, out, a.io.ErrOut))...)
	if errors.Is(err, terminal.InterruptErr) {
		return failure.WithCode(failure.CodeInterrupted, "interrupted")
	}
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

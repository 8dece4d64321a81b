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
func New(io *iostreams.IOStreams) Prompter { return surveyPrompter{io} }

type surveyPrompter struct{ io *iostreams.IOStreams }

func (p surveyPrompter) Available() bool { return p.io.CanPrompt() }

func (p surveyPrompter) Confirm(question string) (bool, error) {
	answer := false
	err := p.prompt(&survey.Confirm{Message: iostreams.Escape(question)}, &answer)
	return answer, err
}

func (p surveyPrompter) Input(question string) (string, error) {
	answer := ""
	err := p.prompt(&survey.Input{Message: iostreams.Escape(question)}, &answer)
	return answer, err
}

func (p surveyPrompter) InputValid(question, fallback string, check func(string) error) (string, error) {
	answer := ""
	err := p.prompt(&survey.Input{Message: iostreams.Escape(question), Default: iostreams.Escape(fallback)}, &answer, survey.WithValidator(func(value any) error {
		text, _ := value.(string)
		return check(text)
	}))
	return answer, err
}

func (p surveyPrompter) Choose(question string, options []string) (string, error) {
	shown, answer := make([]string, len(options)), 0
	for i, option := range options {
		shown[i] = iostreams.Escape(option)
	}
	if err := p.prompt(&survey.Select{Message: iostreams.Escape(question), Options: shown}, &answer); err != nil {
		return "", err
	}
	return options[answer], nil
}

// prompt has survey draw on the terminal, for which it needs the files behind the streams.
func (p surveyPrompter) prompt(question survey.Prompt, answer any, more ...survey.AskOpt) error {
	in, inOK := p.io.In.(terminal.FileReader)
	out, outOK := p.io.VerbatimErrOut().(terminal.FileWriter)
	if !inOK || !outOK || !p.Available() {
		return failure.Errorf("cannot prompt: stdin and stderr must be terminals")
	}
	err := survey.AskOne(question, answer, append(more, survey.WithStdio(in, out, out))...)
	if errors.Is(err, terminal.InterruptErr) {
		return failure.WithCode(failure.CodeInterrupted, "interrupted")
	}
	if err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	return nil
}

package prompt

import (
	"errors"
	"os"
	"testing"

	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// onTerminal are the streams of a program that runs on a terminal.
func onTerminal(program *os.File) *iostreams.IOStreams {
	in, err := os.Stdin, os.Stderr
	os.Stdin, os.Stderr = program, program
	defer func() { os.Stdin, os.Stderr = in, err }()
	return iostreams.System(func(string) string { return "" })
}

func typing(person *os.File, message, answer string) {
	prompttest.Play(person, prompttest.Reply{Prompt: message, Answer: answer})
}

func TestInput(t *testing.T) {
	person, program := prompttest.OpenPTY(t)
	p := New(onTerminal(program))
	if !p.Available() {
		t.Fatal("a terminal is taken for none")
	}
	typing(person, "which one:", "podgroups\r")
	if got, err := p.Input("which one:"); got != "podgroups" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]bool{"y\r": true, "\r": false} {
		person, program := prompttest.OpenPTY(t)
		p := New(onTerminal(program))
		typing(person, "sure?", answer)
		if got, err := p.Confirm("sure?"); got != want || err != nil {
			t.Errorf("%q: got %v, %v", answer, got, err)
		}
	}
}

func TestInterrupt(t *testing.T) {
	person, program := prompttest.OpenPTY(t)
	p := New(onTerminal(program))
	typing(person, "which one:", "\x03")
	_, err := p.Input("which one:")
	if f := failure.From(err); f == nil || f.Code != failure.CodeInterrupted {
		t.Errorf("got %v", err)
	}
}

// A line is requested until it is accepted, and enter alone is the fallback.
func TestPrompt(t *testing.T) {
	for answer, want := range map[string]string{"7\r": "7", "\r": "1"} {
		person, program := prompttest.OpenPTY(t)
		p := New(onTerminal(program))
		typing(person, "how many:", answer)
		refused := false
		got, err := p.InputValid("how many:", "1", func(text string) error {
			if text == "7" && !refused {
				refused = true
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || got != want && got != want+want {
			t.Errorf("%q: got %q, %v", answer, got, err)
		}
	}
}

func TestChoose(t *testing.T) {
	person, program := prompttest.OpenPTY(t)
	p := New(onTerminal(program))
	typing(person, "which one:", "\r")
	if got, err := p.Choose("which one:", []string{"a", "b"}); got != "a" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

package prompt

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/AlecAivazis/survey/v2/terminal"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// onTerminal are the streams of a program that runs on a terminal.
func onTerminal(program *os.File) *iostreams.IOStreams { return onTerm(program, "") }

// onTerm is onTerminal for a TERM.
func onTerm(program *os.File, name string) *iostreams.IOStreams {
	in, err := os.Stdin, os.Stderr
	os.Stdin, os.Stderr = program, program
	defer func() { os.Stdin, os.Stderr = in, err }()
	return iostreams.System(func(key string) string { return map[string]string{"TERM": name}[key] })
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

// A dumb terminal cannot move its cursor: nothing is prompted there.
func TestDumbTerminal(t *testing.T) {
	_, program := prompttest.OpenPTY(t)
	p := New(onTerm(program, "dumb"))
	if p.Available() {
		t.Error("a dumb terminal can be prompted on")
	}
	if _, err := p.Input("which one:"); err == nil || !strings.Contains(err.Error(), "cannot prompt") {
		t.Errorf("got %v", err)
	}
}

// A terminal that does not report where its cursor is ends a prompt: by itself after a while, by Ctrl-C, and by a signal.
func TestTerminalThatDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(person *os.File, clock *clocktesting.FakeClock, interrupt func())
		want failure.Code
		text string
	}{
		{"after a while", func(_ *os.File, clock *clocktesting.FakeClock, _ func()) { clock.Step(answerTimeout) }, failure.CodeError, "does not answer"},
		{"Ctrl-C", func(person *os.File, _ *clocktesting.FakeClock, _ func()) { _, _ = person.WriteString("x\x03") }, failure.CodeInterrupted, "interrupted"},
		{"signal", func(_ *os.File, _ *clocktesting.FakeClock, interrupt func()) { interrupt() }, failure.CodeInterrupted, "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			person, program := prompttest.OpenPTY(t)
			io, clock, interrupted := onTerminal(program), clocktesting.NewFakeClock(time.Time{}), make(chan struct{})
			io.Clock = clock
			io.SetInterrupt(interrupted)
			ended := make(chan error, 1)
			go func() { _, err := New(io).Input("which one:"); ended <- err }()
			for deadline := time.Now().Add(20 * time.Second); !clock.HasWaiters(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the terminal was not queried")
				}
			}
			c.then(person, clock, func() { close(interrupted) })
			select {
			case err := <-ended:
				if f := failure.From(err); f == nil || f.Code != c.want || !strings.Contains(f.Message, c.text) {
					t.Errorf("got %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("the prompt hangs")
			}
		})
	}
}

// A signal ends a prompt that waits for its answer, and every one after it.
func TestSignal(t *testing.T) {
	person, program := prompttest.OpenPTY(t)
	io, interrupted := onTerminal(program), make(chan struct{})
	io.SetInterrupt(interrupted)
	p, screen := New(io), prompttest.Play(person)
	go func() {
		for !strings.Contains(screen(), "sure?") {
			time.Sleep(time.Millisecond)
		}
		close(interrupted)
	}()
	for range 2 {
		if _, err := p.Confirm("sure?"); !failure.Interrupted(err) {
			t.Errorf("got %v", err)
		}
	}
}

// typist types what it is sent.
type typist struct {
	*os.File
	keys chan string
}

func (t typist) Read(p []byte) (int, error) { return copy(p, <-t.keys), nil }

// Keys that come while a query waits reach survey after the answer, which it gets alone, and not at all where the query fails.
func TestKeysBeforeTheAnswer(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	clock, keys, page := clocktesting.NewFakeClock(time.Time{}), make(chan string, 3), make([]byte, 100)
	k := &keyboard{FileReader: typist{keys: keys}, clock: clock}
	s := screen{out, k}
	query := func() {
		t.Helper()
		if _, err := s.Write([]byte("name: " + positionQuery)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want string, wantErr error) {
		t.Helper()
		if n, err := k.Read(page); string(page[:n]) != want || !errors.Is(err, wantErr) {
			t.Errorf("got %q, %v, want %q, %v", page[:n], err, want, wantErr)
		}
	}
	query()
	keys <- "yR"
	keys <- "\x1b[2;1Rz"
	read("\x1b[2;1R", nil)
	query()
	keys <- "\x1b[3;1R"
	read("\x1b[3;1R", nil)
	read("yRz", nil)

	query()
	keys <- "y\r"
	keys <- "\x03"
	read(anyPosition, nil)
	read("", terminal.InterruptErr)
	query() // survey ignores the error, and queries again
	read(anyPosition, nil)
	read("", terminal.InterruptErr)
	if written, err := os.ReadFile(out.Name()); err != nil || strings.Count(string(written), positionQuery) != 3 || strings.Count(string(written), "name: ") != 4 {
		t.Errorf("the terminal got %q, %v", written, err)
	}
}

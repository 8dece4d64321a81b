// Package iostreams is the only place that knows a terminal: where input and output go, whether a human is looking, how
// wide their window is, whether they want colour, and what time it is.
package iostreams

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// fallbackWidth is used for a terminal without a size (columns).
const fallbackWidth = 80

// IOStreams are the streams and the clock of one run of gangctl. Data goes to Out; progress, notes and errors to ErrOut.
// Both escape what a terminal would take for a command.
type IOStreams struct {
	In     io.Reader
	Out    io.Writer // set with SetOut
	ErrOut io.Writer
	Clock  clock.WithTicker

	inTTY, outTTY, errTTY bool

	dumb bool // the terminal cannot move its cursor

	width, height func() int
	raw           func() (restore func() error, err error) // nil without a keyboard
	held          *held
	color         ColorMode
	noColor       bool
	interrupted   <-chan struct{}
	commands      func(text string, admin bool) string // nil leaves them as they are
}

// System returns the streams of the process. getenv is os.Getenv, except in tests.
func System(getenv func(string) string) *IOStreams {
	s := &IOStreams{
		In:     os.Stdin,
		Clock:  clock.RealClock{},
		inTTY:  isTerminal(os.Stdin),
		outTTY: isTerminal(os.Stdout),
		errTTY: isTerminal(os.Stderr),
		width: func() int {
			if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
				return w
			}
			return fallbackWidth
		},
		height: func() int {
			_, h, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0 // no limit
			}
			return h
		},
		raw:     rawTerminal(int(os.Stdin.Fd())),
		held:    &held{},
		noColor: noColor(getenv),
		dumb:    getenv("TERM") == "dumb",
	}
	s.SetOut(os.Stdout)
	s.setErrOut(os.Stderr)
	return s
}

// Test returns streams over buffers that look like pipes, with the given clock.
func Test(c clock.WithTicker) (s *IOStreams, in, out, errOut *bytes.Buffer) {
	in, out, errOut = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	s = &IOStreams{In: in, Clock: c, held: &held{}, width: func() int { return fallbackWidth }}
	s.SetOut(out)
	s.setErrOut(errOut)
	return s, in, out, errOut
}

// CanPrompt reports whether the user can be prompted: standard input and standard error are terminals, which can move their cursor.
func (s *IOStreams) CanPrompt() bool { return s.inTTY && s.errTTY && !s.dumb }

// SetInterrupt sets what is closed when the user has interrupted the program by a signal.
func (s *IOStreams) SetInterrupt(interrupted <-chan struct{}) { s.interrupted = interrupted }

// Interrupted is closed when the user has interrupted the program by a signal; nil if nothing reports that.
func (s *IOStreams) Interrupted() <-chan struct{} { return s.interrupted }

// SetTerminal makes both output streams a terminal of the given width in columns; for tests.
func (s *IOStreams) SetTerminal(width int) {
	s.outTTY, s.errTTY = true, true
	s.width = func() int { return width }
	s.height = func() int { return 0 }
	s.raw = func() (func() error, error) { return func() error { return nil }, nil }
}

// SetCommands sets what completes the commands in texts that are printed.
func (s *IOStreams) SetCommands(complete func(text string, admin bool) string) { s.commands = complete }

// Commands completes the commands in a text that is about to be printed, so that they reach the cluster of this run: with its --context, for instance.
func (s *IOStreams) Commands(text string) string { return s.complete(text, false) }

// AdminCommands is Commands for those that are for an administrator, who is known to the cluster by another name.
func (s *IOStreams) AdminCommands(text string) string { return s.complete(text, true) }

func (s *IOStreams) complete(text string, admin bool) string {
	if s.commands == nil {
		return text
	}
	return s.commands(text, admin)
}

// Width is the number of columns of the terminal behind Out, or 0 when Out is not a terminal: no limit.
func (s *IOStreams) Width() int {
	if !s.outTTY {
		return 0
	}
	return s.width()
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

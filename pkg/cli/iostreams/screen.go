package iostreams

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/term"
)

// What a terminal is sent: another screen than that of the shell, without a cursor; home, and the rest of a line or the screen
// cleared. The sequences are those of xterm, which every terminal knows that has a second screen.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	toHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// Screen is a terminal that a command has taken over to redraw in place. A nil Screen has no keys.
type Screen struct {
	out     io.Writer
	colored bool
	height  func() int
	keys    chan byte
	once    sync.Once
	restore func() error
}

// TakeScreen takes the terminal over until Restore; nil without a terminal on both sides that can move its cursor. Keys come one by one and are not shown,
// Ctrl-C among them.
func (s *IOStreams) TakeScreen() (*Screen, error) {
	if !s.IsTerminal() || s.dumb {
		return nil, nil
	}
	restore, err := s.raw()
	if err != nil {
		return nil, err
	}
	screen := &Screen{out: s.VerbatimOut(), colored: s.colored(s.outTTY), height: s.height, keys: make(chan byte), restore: restore}
	if _, err := io.WriteString(s.VerbatimOut(), enterScreen); err != nil {
		return nil, errors.Join(err, restore())
	}
	s.held.set(screen.Restore)
	go screen.read(s.In)
	return screen, nil
}

// read passes keys on. It ends with the program: a read from a terminal cannot be taken back.
func (s *Screen) read(in io.Reader) {
	key := make([]byte, 1)
	for {
		n, err := in.Read(key)
		if n == 1 {
			s.keys <- key[0]
		}
		if err != nil {
			return
		}
	}
}

// Keys are the keys as they are typed.
func (s *Screen) Keys() <-chan byte {
	if s == nil {
		return nil
	}
	return s.keys
}

// Draw shows lines in place of those before; of what does not fit below, the last line has how much it is. Lines must not be wider than the terminal.
func (s *Screen) Draw(lines []string) {
	if h := s.height(); h > 1 && len(lines) > h {
		lines = append(slices.Clone(lines[:h-1]), fmt.Sprintf("… %d more lines", len(lines)-h+1))
	}
	var b bytes.Buffer
	b.WriteString(toHome)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(escape(line, s.colored) + clearLine)
	}
	b.WriteString(clearBelow)
	_, _ = s.out.Write(b.Bytes()) // OutErr keeps what went wrong
}

// Restore gives the terminal back as it was. It may be called more than once.
func (s *Screen) Restore() {
	s.once.Do(func() {
		_, _ = io.WriteString(s.out, leaveScreen) // as above
		_ = s.restore()                           // the error has no reader any more
	})
}

// rawTerminal makes the terminal behind a file pass on every key.
func rawTerminal(fd int) func() (func() error, error) {
	if !term.IsTerminal(fd) {
		return nil
	}
	return func() (func() error, error) {
		before, err := term.MakeRaw(fd)
		if err != nil {
			return nil, err
		}
		return func() error { return term.Restore(fd, before) }, nil
	}
}

// Raw makes the terminal pass on every key, for a program elsewhere, until restore is called; restore is nil unless both sides are a
// terminal.
func (s *IOStreams) Raw() (restore func() error, err error) {
	if !s.outTTY || s.raw == nil {
		return nil, nil
	}
	restore, err = s.raw()
	if err != nil {
		return nil, err
	}
	s.held.set(func() { _ = restore() }) // the program ends
	return restore, nil
}

// held is how to give back a terminal that was taken over.
type held struct {
	mu      sync.Mutex
	restore func()
}

func (h *held) set(restore func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restore = restore
}

// Restore gives a terminal back that was taken over, for a program that ends at once. Where it was given back already it does nothing
// that shows.
func (s *IOStreams) Restore() {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	if s.held.restore != nil {
		s.held.restore()
	}
}

// Size is the number of columns and rows of the terminal behind Out; zero where there is none.
func (s *IOStreams) Size() (columns, rows int) {
	if !s.outTTY {
		return 0, 0
	}
	return s.width(), s.height()
}

// IsTerminal reports whether a user can look and type.
func (s *IOStreams) IsTerminal() bool { return s.outTTY && s.raw != nil }

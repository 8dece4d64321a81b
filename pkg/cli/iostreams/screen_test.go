package iostreams

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestScreen(t *testing.T) {
	s, _, out, _ := Test(clocktesting.NewFakeClock(time.Time{}))
	if screen, err := s.TakeScreen(); screen != nil || err != nil || screen.Keys() != nil {
		t.Errorf("a pipe is no screen: %v, %v", screen, err)
	}
	if restore, err := s.Raw(); restore != nil || err != nil || s.IsTerminal() {
		t.Errorf("a pipe is no terminal: %v", err)
	}
	s.SetTerminal(40)
	in, typed := io.Pipe()
	s.In = in
	restored := 0
	s.raw = func() (func() error, error) { return func() error { restored++; return nil }, nil }
	s.height = func() int { return 2 }
	screen, err := s.TakeScreen()
	if err != nil {
		t.Fatal(err)
	}
	screen.Draw([]string{"one", "two", "three"})
	if _, err := typed.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if key := <-screen.Keys(); key != 'q' {
		t.Errorf("got %q", key)
	}
	screen.Restore()
	screen.Restore()
	want := enterScreen + "\x1b[Hone\x1b[K\r\n… 2 more lines\x1b[K\x1b[J" + leaveScreen
	if out.String() != want || restored != 1 {
		t.Errorf("restored %d times, got %q", restored, out)
	}
	if columns, rows := s.Size(); columns != 40 || rows != 2 || !s.IsTerminal() {
		t.Errorf("got %d, %d", columns, rows)
	}
}

// A terminal that cannot be written to is given back.
func TestScreenThatFails(t *testing.T) {
	s, _, _, _ := Test(clocktesting.NewFakeClock(time.Time{}))
	s.SetTerminal(40)
	restored := false
	s.raw = func() (func() error, error) { return func() error { restored = true; return nil }, nil }
	s.SetOut(broken{})
	if _, err := s.TakeScreen(); err == nil || !strings.Contains(err.Error(), "broken") || !restored {
		t.Errorf("got %v, restored: %v", err, restored)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// A program that ends at once leaves no terminal that shows nothing of what is typed.
func TestRestoreAtOnce(t *testing.T) {
	for name, take := range map[string]func(*IOStreams) error{
		"screen": func(s *IOStreams) error { _, err := s.TakeScreen(); return err },
		"raw":    func(s *IOStreams) error { _, err := s.Raw(); return err },
	} {
		s, _, out, _ := Test(clocktesting.NewFakeClock(time.Time{}))
		s.Restore() // nothing was taken
		s.SetTerminal(40)
		restored := 0
		s.raw = func() (func() error, error) { return func() error { restored++; return nil }, nil }
		if err := take(s); err != nil {
			t.Fatal(err)
		}
		of := *s // as commands copy it
		if of.Restore(); restored != 1 || name == "screen" && !strings.HasSuffix(out.String(), leaveScreen) {
			t.Errorf("%s: restored %d times, got %q", name, restored, out)
		}
	}
}

// A dumb terminal can be written to, and typed at, but nothing on it can be drawn over.
func TestDumbTerminal(t *testing.T) {
	s, _, out, errOut := Test(clocktesting.NewFakeClock(time.Time{}))
	s.SetTerminal(40)
	s.dumb = true
	if screen, err := s.TakeScreen(); screen != nil || err != nil {
		t.Errorf("a dumb terminal is no screen: %v, %v", screen, err)
	}
	s.Progress(func() string { return "read 1" })()
	if out.Len()+errOut.Len() > 0 || s.Width() != 40 || !s.IsTerminal() {
		t.Errorf("got %q, %q, width %d", out, errOut, s.Width())
	}
	if s.inTTY = true; s.CanPrompt() {
		t.Error("a dumb terminal can be prompted on")
	}
}

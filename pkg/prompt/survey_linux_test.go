package prompt

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/iostreams"
)

// openTerminal returns both ends of a terminal: what a person types and sees, and what the program has for its streams.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals to give: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// onTerminal are the streams of a program that runs on a terminal.
func onTerminal(program *os.File) *iostreams.IOStreams {
	in, err := os.Stdin, os.Stderr
	os.Stdin, os.Stderr = program, program
	defer func() { os.Stdin, os.Stderr = in, err }()
	return iostreams.System(func(string) string { return "" })
}

// cursor is how a program asks a terminal where the cursor is; place is the answer.
const cursor, place = "\x1b[6n", "\x1b[1;1R"

// typing plays the terminal and the person in front of it, who types the answer when the question is on the screen and the
// screen is quiet: what is typed while survey talks with the terminal is lost, and then it is typed again.
func typing(person *os.File, question, answer string) {
	screen := make(chan string)
	go func() {
		defer close(screen)
		for page := make([]byte, 4096); ; {
			n, err := person.Read(page)
			if err != nil {
				return // the test is over
			}
			screen <- string(page[:n])
		}
	}()
	go func() {
		for seen := ""; ; {
			reply := ""
			select {
			case page, more := <-screen:
				if !more {
					return
				}
				seen += page
				reply = strings.Repeat(place, strings.Count(page, cursor))
			case <-time.After(200 * time.Millisecond):
				if strings.Contains(seen, question) {
					reply = answer
				}
			}
			if _, err := person.WriteString(reply); err != nil {
				return
			}
		}
	}()
}

func TestInput(t *testing.T) {
	person, program := openTerminal(t)
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
		person, program := openTerminal(t)
		p := New(onTerminal(program))
		typing(person, "sure?", answer)
		if got, err := p.Confirm("sure?"); got != want || err != nil {
			t.Errorf("%q: got %v, %v", answer, got, err)
		}
	}
}

func TestInterrupt(t *testing.T) {
	person, program := openTerminal(t)
	p := New(onTerminal(program))
	typing(person, "which one:", "\x03")
	_, err := p.Input("which one:")
	if f := failure.From(err); f == nil || f.Code != failure.CodeInterrupted {
		t.Errorf("got %v", err)
	}
}

package prompttest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangctl/gangctl/internal/prerequisite"
)

// OpenPTY returns both ends of a pseudo-terminal: the user's, and the one that the program has for its streams. On a
// machine that has none to give the test is skipped.
func OpenPTY(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		prerequisite.Missing(t, fmt.Sprintf("this machine has no terminals to give: %v", err))
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

// cursor is a program's query for the position of the cursor; place is the terminal's answer.
const cursor, place = "\x1b[6n", "\x1b[1;1R"

// patience is how long to wait before typing the same reply again. What follows a prompt may take a while.
const patience = 5 * time.Second

// Reply is typed when its prompt is on the screen.
type Reply struct{ Prompt, Answer string }

// Play reads the screen and types one reply after the other, each when its prompt is on the screen and the
// screen is quiet: what is typed while the program talks with the terminal is lost, and then it is typed again. The last reply is repeated
// until the terminal is closed. The function returned reports everything on the screen.
func Play(person *os.File, replies ...Reply) (screen func() string) {
	pages, all := make(chan string), make(chan string, 1)
	all <- ""
	go func() {
		defer close(pages)
		for page := make([]byte, 4096); ; {
			n, err := person.Read(page)
			if err != nil {
				return // the program is done
			}
			all <- <-all + string(page[:n])
			pages <- string(page[:n])
		}
	}()
	go func() {
		var typed time.Time
		for seen := ""; ; {
			text := ""
			select {
			case page, more := <-pages:
				if !more {
					return
				}
				seen += page
				text = strings.Repeat(place, strings.Count(page, cursor))
				if len(replies) > 1 && strings.Contains(seen, replies[1].Prompt) {
					_, seen, _ = strings.Cut(seen, replies[0].Prompt)
					replies, typed = replies[1:], time.Time{}
				}
			case <-time.After(200 * time.Millisecond):
				if len(replies) > 0 && strings.Contains(seen, replies[0].Prompt) && time.Since(typed) > patience {
					text, typed = replies[0].Answer, time.Now()
				}
			}
			if _, err := person.WriteString(text); err != nil {
				return
			}
		}
	}()
	return func() string {
		text := <-all
		all <- text
		return text
	}
}

package prompt

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/AlecAivazis/survey/v2/terminal"
	"k8s.io/utils/clock"
)

// Survey queries the terminal for the position of its cursor, and waits for the answer for as long as it takes, with Ctrl-C switched off. So its
// two sides of the terminal pass through here. Keys that are typed before the answer are held back: survey would take them for a part of it. Where the answer does
// not come in time, or the user interrupts meanwhile, they are dropped, and survey gets a position, without which it would panic, to this and every
// further query, and an error next.
const (
	positionQuery = "\x1b[6n"
	anyPosition   = "\x1b[1;1R"
	ctrlC         = '\x03'
	// answerTimeout is how long a terminal may take to answer a query: it may be at the other end of a slow line.
	answerTimeout = 5 * time.Second
)

var positionAnswer = regexp.MustCompile(`\x1b\[\d+;\d+R`)

// errNoAnswer is the error of a terminal that does not report the position of its cursor.
var errNoAnswer = errors.New("the terminal does not answer")

// keyboard is the input side of a terminal, and knows of the queries that its screen passes on.
type keyboard struct {
	terminal.FileReader
	clock     clock.WithTicker
	interrupt <-chan struct{}

	reads    chan chunk       // of the read that is under way, or nil
	deadline <-chan time.Time // when the query that waits for its answer fails; nil without one
	pending  []byte           // what came since the query
	left     []byte           // what survey reads next
	held     []byte           // what it reads when it has read that, and no query waits
	err      error            // ends every further read
	failed   error            // why the prompt failed, whatever survey makes of what it has read
}

// chunk is what one read from the terminal returned.
type chunk struct {
	data []byte
	err  error
}

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	for len(k.left) == 0 {
		switch {
		case len(k.held) > 0 && k.deadline == nil:
			k.left, k.held = k.held, nil
		case k.err != nil:
			return 0, k.err
		default:
			k.wait()
		}
	}
	n := copy(p, k.left)
	k.left = k.left[n:]
	return n, nil
}

// wait waits for keys, the end of the time for an answer, or an interrupt. A read from a terminal cannot be taken back: one that is given up
// is left to the next wait, or ends with the program.
func (k *keyboard) wait() {
	if k.reads == nil {
		k.reads = make(chan chunk, 1)
		go func(reads chan<- chunk) {
			page := make([]byte, 256)
			n, err := k.FileReader.Read(page)
			reads <- chunk{page[:n], err}
		}(k.reads)
	}
	select {
	case c := <-k.reads:
		k.reads = nil
		k.pass(c.data)
		switch {
		case c.err == nil:
		case k.deadline != nil:
			k.fail(c.err)
		default:
			k.err = c.err // after what was read with it
		}
	case <-k.deadline:
		k.fail(errNoAnswer)
	case <-k.interrupt:
		k.fail(terminal.InterruptErr)
	}
}

// pass passes keys on, or, while a query waits, its answer alone: survey reads nothing else then.
func (k *keyboard) pass(keys []byte) {
	if k.deadline == nil {
		k.left = keys
		return
	}
	k.pending = append(k.pending, keys...)
	if at := positionAnswer.FindIndex(k.pending); at != nil {
		k.left = slices.Clone(k.pending[at[0]:at[1]])
		k.held = slices.Concat(k.held, k.pending[:at[0]], k.pending[at[1]:])
		k.deadline, k.pending = nil, nil
	} else if bytes.IndexByte(keys, ctrlC) >= 0 {
		k.fail(terminal.InterruptErr)
	}
}

// fail ends every further read, after the answer to a query that survey waits for.
func (k *keyboard) fail(err error) {
	k.err, k.failed = err, err
	k.left, k.held, k.pending = nil, nil, nil
	if k.deadline != nil {
		k.left, k.deadline = []byte(anyPosition), nil
	}
}

// screen is the output side of the terminal of a keyboard.
type screen struct {
	terminal.FileWriter
	keys *keyboard
}

// Write implements io.Writer.
func (s screen) Write(p []byte) (int, error) {
	if !bytes.Contains(p, []byte(positionQuery)) {
		return s.FileWriter.Write(p)
	}
	if s.keys.failed != nil { // an answer of the terminal would come too late
		s.keys.left = append(s.keys.left, anyPosition...)
		_, err := s.FileWriter.Write(bytes.ReplaceAll(p, []byte(positionQuery), nil))
		return len(p), err
	}
	s.keys.pending, s.keys.deadline = nil, s.keys.clock.After(answerTimeout)
	return s.FileWriter.Write(p)
}

package prompt

import (
	"bytes"
	"errors"
	"regexp"
	"time"

	"github.com/AlecAivazis/survey/v2/terminal"
	"k8s.io/utils/clock"
)

// Survey queries the terminal for the position of its cursor, and waits for the answer for as long as it takes, with Ctrl-C switched off. So its
// two sides of the terminal pass through here: where the answer does not come in time, or the user interrupts meanwhile, survey gets a
// position, without which it would panic, and an error next.
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
	answer   []byte           // what came since the query
	left     []byte           // what was read and not passed on yet
	err      error            // ends every further read
}

// chunk is what one read from the terminal returned.
type chunk struct {
	data []byte
	err  error
}

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	for len(k.left) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		k.wait()
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
		k.left = c.data
		k.answered(c.data)
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

// answered looks for the answer to a query among the keys. Until it comes, survey looks for nothing else.
func (k *keyboard) answered(keys []byte) {
	if k.deadline == nil {
		return
	}
	k.answer = append(k.answer, keys...)
	switch {
	case positionAnswer.Match(k.answer):
		k.deadline, k.answer = nil, nil
	case bytes.IndexByte(keys, ctrlC) >= 0:
		k.fail(terminal.InterruptErr)
	}
}

// fail ends every further read, after the answer to a query that survey waits for.
func (k *keyboard) fail(err error) {
	k.err, k.left = err, nil
	if k.deadline != nil {
		k.left, k.deadline, k.answer = []byte(anyPosition), nil, nil
	}
}

// screen is the output side of the terminal of a keyboard.
type screen struct {
	terminal.FileWriter
	keys *keyboard
}

// Write implements io.Writer.
func (s screen) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(positionQuery)) {
		s.keys.answer, s.keys.deadline = nil, s.keys.clock.After(answerTimeout)
	}
	return s.FileWriter.Write(p)
}

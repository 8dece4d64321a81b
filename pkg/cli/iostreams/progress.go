package iostreams

import (
	"fmt"
	"sync"
	"time"
)

const (
	// progressDelay is how long something takes before the user is notified of what it is.
	progressDelay = time.Second
	// progressInterval is the time between two changes of the line.
	progressInterval = 200 * time.Millisecond
	// eraseLine puts the cursor at the beginning of its line, and empties that.
	eraseLine = "\r\x1b[K"
)

// Progress writes a line about what takes longer than a second to standard error, and erases it when done is called. It writes nothing
// unless standard error is a terminal that can erase a line. text is called from another goroutine.
func (s *IOStreams) Progress(text func() string) (done func()) {
	if !s.errTTY || s.dumb {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		delay := s.Clock.NewTimer(progressDelay)
		defer delay.Stop()
		select {
		case <-end:
			return
		case <-delay.C():
		}
		tick := s.Clock.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			fmt.Fprint(s.VerbatimErrOut(), eraseLine, Escape(text()))
			select {
			case <-end:
				fmt.Fprint(s.VerbatimErrOut(), eraseLine)
				return
			case <-tick.C():
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(end)
		<-ended
	})
}

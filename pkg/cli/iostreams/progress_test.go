package iostreams

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		takes    time.Duration
		want     string
	}{
		{"a pipe", false, time.Minute, ""},
		{"what is quick is not reported", true, progressDelay - time.Millisecond, ""},
		{"a line that changes and goes", true, progressDelay + progressInterval + time.Millisecond, "\r\x1b[Kread 1\r\x1b[Kread 2\r\x1b[K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _, out, errOut := Test(clock.RealClock{})
				if c.terminal {
					s.SetTerminal(80)
				}
				var n atomic.Int32
				done := s.Progress(func() string { return fmt.Sprint("read ", n.Add(1)) })
				time.Sleep(c.takes)
				done()
				done()
				if errOut.String() != c.want || out.Len() != 0 {
					t.Errorf("got %q, and %q on standard output", errOut, out)
				}
			})
		})
	}
}

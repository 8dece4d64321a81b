package cmdutil

import (
	"runtime/debug"
	"testing"

	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// Garbage is collected earlier once a cluster has been read, unless GOGC has a number of its own.
func TestTidy(t *testing.T) {
	usual := debug.SetGCPercent(usualGrowth)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	for before, want := range map[int]int{usualGrowth: tidyGrowth, 400: 400, -1: -1} {
		debug.SetGCPercent(before)
		io, _, _, _ := iostreams.Test(clock.RealClock{})
		_, done := Collecting(io)
		if while := debug.SetGCPercent(before); while != before {
			t.Errorf("%d becomes %d while the cluster is read", before, while)
		}
		done()
		done()
		if after := debug.SetGCPercent(before); after != want {
			t.Errorf("%d becomes %d, want %d", before, after, want)
		}
	}
}

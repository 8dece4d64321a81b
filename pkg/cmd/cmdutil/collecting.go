package cmdutil

import (
	"fmt"
	"sync/atomic"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// Collecting reports on a terminal how much of the cluster has been read, where that takes longer than a second. count goes into the
// options of collect; done is called when all is read.
func Collecting(io *iostreams.IOStreams) (count *atomic.Int64, done func()) {
	count = &atomic.Int64{}
	return count, io.Progress(func() string { return fmt.Sprintf("Reading the cluster: %d objects", count.Load()) })
}

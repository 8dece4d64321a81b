package cmdutil

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
)

// Collecting reports on a terminal how much of the cluster has been read, where that takes longer than a second. count goes into the
// options of collect; done is called when all is read, by a command that then gives one answer and ends. It may be called again.
func Collecting(io *iostreams.IOStreams) (count *atomic.Int64, done func()) {
	count = &atomic.Int64{}
	end := io.Progress(func() string { return fmt.Sprintf("Reading the cluster: %d objects", count.Load()) })
	return count, func() {
		end()
		tidy()
	}
}

// ReadSnapshot reads the cluster, or the file that --from names, and reports how far it is. The client is nil for a file.
func ReadSnapshot(ctx context.Context, io *iostreams.IOStreams, from string, connect func() (*kube.Client, error), options collect.Options) (*snapshot.Snapshot, *kube.Client, error) {
	count, done := Collecting(io)
	defer done()
	options.Count, options.Now = count, io.Clock.Now
	return collect.Read(ctx, from, io.In, connect, options)
}

const (
	// usualGrowth is by how many percent what is in use may grow until garbage is collected, unless GOGC has another number; tidyGrowth once
	// a cluster has been read.
	usualGrowth = 100
	tidyGrowth  = 25
)

// tidy has garbage collected earlier from now on. What was read stays in use until the program ends, and an answer makes as much again, most
// of it garbage: at the usual growth none of it is ever collected. While the cluster is read little is garbage, and to collect it as
// often takes up to a third more CPU for nothing. Whoever has set GOGC is obeyed.
func tidy() {
	if before := debug.SetGCPercent(tidyGrowth); before != usualGrowth {
		debug.SetGCPercent(before)
	}
}

// Command gangctl submits gang jobs on Kubernetes and shows how they are.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
	"github.com/gangctl/gangctl/scheduler"
)

func main() {
	// Libraries of the scheduler put flags of theirs there, and cobra would show them as gangctl's.
	pflag.CommandLine = pflag.NewFlagSet("gangctl", pflag.ContinueOnError)
	f := &cmdutil.Factory{IO: iostreams.System(os.Getenv), Program: os.Args[0], Args: os.Args[1:], Getenv: os.Getenv, Environ: os.Environ, Version: version.Get()}
	os.Exit(int(root.Execute(interruptible(f.IO), f, root.NewCommand(f, scheduler.NewCommand()))))
}

// interruptible ends with the first Ctrl-C, so that a command can report what keeps running; the second ends the program,
// and leaves the terminal as it was.
func interruptible(io *iostreams.IOStreams) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	io.SetInterrupt(ctx.Done())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel()
		<-signals
		io.Restore()
		os.Exit(int(failure.CodeInterrupted))
	}()
	return ctx
}

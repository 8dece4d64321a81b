// Command gangctl-sandbox runs a real Kubernetes control plane on a machine
// without a cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/command"
	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/controlplane"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "component" && (component.Known(os.Args[2]) || addon.Known(os.Args[2])) {
		os.Exit(controlplane.Run(os.Args[2:], os.Stdin))
	}
	// The components that are linked in leave flags of theirs in this global set,
	// which cobra would give to every command.
	pflag.CommandLine = pflag.NewFlagSet("gangctl-sandbox", pflag.ContinueOnError)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	io := iostreams.System(os.Getenv)
	if err := command.NewRoot(command.Env{IO: io, Getenv: os.Getenv}).ExecuteContext(ctx); err != nil {
		f := failure.From(err)
		failure.Print(io, f)
		stop()
		os.Exit(int(f.Code))
	}
}

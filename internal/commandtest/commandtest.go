// Package commandtest runs commands in tests as package root does, which prints their failures itself.
package commandtest

import (
	"bytes"
	"context"
	"time"

	"github.com/spf13/cobra"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// Streams are what a command reads, and what it has printed.
type Streams struct{ In, Out, ErrOut *bytes.Buffer }

// Factory is what a command in a namespace depends on, at a time that stands still, with its streams: on a terminal of so many columns, or
// in pipes if width is 0.
func Factory(namespace string, now time.Time, width int, client func() (*kube.Client, error)) (*cmdutil.Factory, Streams) {
	io, in, out, errOut := iostreams.Test(clocktesting.NewFakeClock(now))
	if width > 0 {
		io.SetTerminal(width)
	}
	return &cmdutil.Factory{IO: io, Client: client, Namespace: func() (string, error) { return namespace, nil }}, Streams{in, out, errOut}
}

// Execute runs a command with arguments.
func Execute(ctx context.Context, cmd *cobra.Command, args ...string) error {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

// Run runs a command of a [Factory] with arguments, and returns what it printed, and how it failed.
func Run(ctx context.Context, cmd *cobra.Command, streams Streams, args ...string) (stdout, stderr string, failed *failure.Error) {
	failed = failure.From(Execute(ctx, cmd, args...))
	return streams.Out.String(), streams.ErrOut.String(), failed
}

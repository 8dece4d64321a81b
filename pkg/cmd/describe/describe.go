// Package describe is `gangctl describe`.
package describe

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	cmdutil.JobOptions

	Output printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show everything about one job on one page",
		Long: `Show one job of any kind, whoever created it, on one page: its state, its gang and its members, what it requests, when it came
how far, what happened to it, its gang and its pods, the command line that submitted it, and whether it was changed since. In the
timeline a step is when the last member took it; one that not every member has taken, or whose evidence is gone with its pods,
is "-".`,
		Example: `  # all there is to know
  gangctl describe llama

  # when did it get its nodes?
  gangctl describe llama -o json | jq '.timeline[] | select(.step == "scheduled").at'`,
		SuggestFor: []string{"explain", "inspect"},
	}
	o.Output.AddFlags(cmd, printer.WithTemplates(printer.JSON, printer.YAML)...)
	o.Bind(cmd, f, func(*cobra.Command) error { return o.Output.Validate() }, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	client, job, pods, err := o.JobAndPods(ctx)
	if err != nil {
		return err
	}
	happened, unread := events.Of(ctx, client, job, pods)
	if unread != nil && !apierrors.IsForbidden(unread) {
		return unread
	}
	if unread != nil { // the page without them is better than none
		fmt.Fprintf(o.IO.ErrOut, "note: its events are not known: %s\n", failure.From(unread).Message)
	}
	s := summary.Of(job, pods, o.IO.Clock.Now())
	if !o.Output.IsTable() {
		p := newPage(job, s, happened)
		if unread != nil {
			p.Events = nil // which is not that there are none
		}
		return cmdutil.Encode(o.IO, &o.Output, p)
	}
	return o.print(job, s, happened, unread == nil)
}

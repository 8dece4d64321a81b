// Package get is `gangctl get`.
package get

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
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
		Use:   "get NAME",
		Short: "Show one job and its members",
		Long: `Show one job of any kind, whoever created it: its state, its gang, and each member with its node or with why it has none.
A member is Lost whose node does not report any more: whether it still runs is not known.

If jobs of several kinds have the name, use KIND/NAME: tfjob/llama.`,
		Example: `  # the job and its members
  gangctl get llama

  # the job as the cluster stores it
  gangctl get llama -o yaml`,
		SuggestFor: []string{"show", "sstat"},
	}
	o.Output.AddTableFlags(cmd)
	o.Bind(cmd, f, func(*cobra.Command) error { return o.Output.Validate() }, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if !o.Output.IsTable() {
		p, err := o.Output.Printer()
		if err != nil {
			return err
		}
		_, job, err := o.Job(ctx)
		if err != nil {
			return err
		}
		return p.PrintObj(job.Object, o.IO.Out)
	}
	_, job, pods, err := o.JobAndPods(ctx)
	if err != nil {
		return err
	}
	return Print(o.IO, o.Output, job, summary.Of(job, pods, o.IO.Clock.Now()))
}

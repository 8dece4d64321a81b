// Package wait is `gangctl wait`.
package wait

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	cmdutil.JobOptions

	For     watch.Target
	Timeout time.Duration
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a job is scheduled, runs, is done or has failed",
		Long: `Wait until every member of a job of any kind has a node (scheduled) or runs (running), or until the job has succeeded (done) or
failed (failed), whoever created it. Each step on the way is reported on standard error. The exit code is 0 when the job has come so
far, 4 when the time is over, 9 when the job failed or was deleted meanwhile, and 130 after Ctrl-C. The job is left as it is.`,
		Example: `  # until all of it runs
  gangctl wait llama

  # until it has succeeded, for a day at most
  gangctl wait llama --for done --timeout 24h`,
		SuggestFor: []string{"await", "swait"},
	}
	flagvalue.Enum(cmd, cmd.Flags(), &o.For, "for", watch.Running, "How far the job has to come", watch.Scheduled, watch.Running, watch.Done, watch.Failed)
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "How long to wait, such as 2m (default: no limit)")
	o.Bind(cmd, f, o.validate, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	if o.Timeout < 0 || cmd.Flags().Changed("timeout") && o.Timeout == 0 {
		return failure.Usagef("--timeout %s: must be greater than zero, such as 2m", o.Timeout).WithHint("leave out --timeout to wait without limit")
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	client, job, pods, err := o.JobAndPods(ctx)
	if err != nil {
		return err
	}
	w := &watch.Waiter{Client: client, IO: o.IO, Target: o.For, Timeout: o.Timeout, Known: pods, Why: cmdutil.WhyPendingLine(client, o.IO.Clock.Now)}
	return w.Wait(ctx, job)
}

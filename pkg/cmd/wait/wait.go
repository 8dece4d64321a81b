// Package wait is `gangctl wait`.
package wait

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/await"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/jobname"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/flagvalue"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
)

// Options are what the command works with.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	Name    string
	For     await.Target
	Timeout time.Duration
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a job is scheduled, runs, is done or has failed",
		Long: `Wait until every member of a TFJob has a node (scheduled) or runs (running), or until the job has succeeded (done) or failed
(failed), whoever created it. Each step on the way is told on standard error. The exit code is 0 when the job has come so far,
4 when the time is over, 9 when the job failed or was deleted meanwhile, and 130 after Ctrl-C. The job is left as it is.`,
		Example: `  # until all of it runs
  gangctl wait llama

  # until it has succeeded, for a day at most
  gangctl wait llama --for done --timeout 24h`,
		SuggestFor: []string{"await", "swait"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("wait needs the name of one job, got %d", len(args)).WithHint("see them with `gangctl list`")
			}
			return nil
		},
		ValidArgsFunction: jobname.Complete(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
			o.Name = args[0]
			if o.Timeout < 0 || cmd.Flags().Changed("timeout") && o.Timeout == 0 {
				return failure.Usagef("--timeout %s: must be greater than zero, such as 2m", o.Timeout).WithHint("leave out --timeout to wait without limit")
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	flagvalue.Enum(cmd, cmd.Flags(), &o.For, "for", await.Running, "How far the job has to come", await.Scheduled, await.Running, await.Done, await.Failed)
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "How long to wait, such as 2m (default: no limit)")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	// The uid tells the job from a later one of the same name.
	job, err := jobname.Read(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	w := &await.Waiter{Client: client, IO: o.IO, Target: o.For, Timeout: o.Timeout, Why: await.WhyPending(client, o.IO)}
	return w.Wait(ctx, namespace, o.Name, job.GetUID())
}

// Package describe is `gangctl describe`.
package describe

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/jobname"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Options are what the command works with.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	Name string
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show everything about one job on one page",
		Long: `Show one TFJob, whoever created it, on one page: its state, its gang and its members, what it asks for, when it came how far, what
happened to it, its gang and its pods, and the command line that submitted it. In the timeline a step is when the last member
took it; one that not every member has taken, or whose evidence is gone with its pods, is "-".`,
		Example: `  # all there is to know
  gangctl describe llama

  # a job in another namespace
  gangctl describe llama -n research`,
		SuggestFor: []string{"explain", "inspect"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("describe needs the name of one job, got %d", len(args)).WithHint("for all jobs: gangctl list")
			}
			return nil
		},
		ValidArgsFunction: jobname.Complete(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
			o.Name = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
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
	stored, err := jobname.Read(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	job, err := tfjob.Decode(stored)
	if err != nil {
		return err
	}
	pods, err := jobname.Pods(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	happened, err := events.Of(ctx, client, stored, pods)
	if err != nil {
		return err
	}
	return o.print(job, tfjob.Summarize(job, tfjob.ByOwner(pods)[job.UID]), happened)
}

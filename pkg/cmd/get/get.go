// Package get is `gangctl get`.
package get

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/jobname"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/printer"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Options are what the command works with.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	Name   string
	Output printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show one job and its members",
		Long:  "Show one TFJob, whoever created it: its state, its gang, and each member with its node or with why it has none.",
		Example: `  # the job and its members
  gangctl get llama

  # the job as the cluster stores it
  gangctl get llama -o yaml`,
		SuggestFor: []string{"show", "sstat"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("get needs the name of one job, got %d", len(args)).WithHint("for all jobs: gangctl list")
			}
			return nil
		},
		ValidArgsFunction: jobname.Complete(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
			o.Name = args[0]
			if err := o.Output.Validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.Output.AddTableFlags(cmd)
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
	if !o.Output.IsTable() {
		p, err := o.Output.Printer()
		if err != nil {
			return err
		}
		return p.PrintObj(stored, o.IO.Out)
	}
	job, err := tfjob.Decode(stored)
	if err != nil {
		return err
	}
	pods, err := jobname.Pods(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	return o.print(job, tfjob.Summarize(job, tfjob.ByOwner(pods)[job.UID]))
}

// Package fit is `gangctl fit`: would a gang start now, and what is the largest that would? Nothing is created.
package fit

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/text"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO *iostreams.IOStreams

	WhatFits bool
	Output   printer.Flags

	flags *submit.FitFlags
	// gpus is true if --gpus was set.
	gpus bool
}

// NewCommand returns the command, which answers for a TFJob, with a subcommand for each kind of job; runF replaces the run in
// tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	all := submit.KindNames()
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	cmd := newCommand(f, all[0].Name, runF)
	cmd.Use = "fit [KIND] --workers N --gpus G | --what-fits"
	cmd.Short = "Check whether a gang would start now, or what would"
	cmd.Long = `Report whether a gang of these flags, which mean what they mean to submit tf, would start now: the API server looks at the job and at
a pod of each role, and then quota, queue and room for all members are reckoned. Nothing is created, and neither a name nor an
image is needed. The answer and the exit code are those of why-pending, but 0 where it would start. For the other kinds of job
that submit makes, put the kind first: fit pytorch, fit mpi, fit job.

--what-fits reports for each size of a worker how many of them would start now as one gang, and what limits the number: room, or
what why-pending would report of one more. With --gpus it does so for workers of that size only. Unless --cpu and --memory are
set, with each GPU comes what is usual in the cluster. The exit code is 0 if anything would start, else that of the
smallest gang's answer.`
	cmd.Example = `  # would 4 workers with 2 GPUs each start now?
  gangctl fit --workers 4 --gpus 2

  # what would?
  gangctl fit --what-fits

  # how many workers with 8 GPUs each, with a parameter server?
  gangctl fit --what-fits --gpus 8 --ps 1

  # and as a PyTorchJob?
  gangctl fit pytorch --workers 4 --gpus 2`
	cmd.SuggestFor = []string{"showbf", "sinfo-free", "capacity"}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return failure.Usagef("fit %q: the kinds of job are: %s", args[0], strings.Join(names, ", ")).WithHint("of a job that is there: gangctl why-pending %s", shell.Quote(args[0]))
		}
		return nil
	}
	for _, w := range all {
		sub := newCommand(f, w.Name, runF)
		sub.Use = w.Name + " --workers N --gpus G | --what-fits"
		sub.Short = "Check whether a " + w.Kind + " would start now, or what would"
		sub.Long = "Report whether a " + w.Kind + " of these flags, which mean what they mean to submit " + w.Name + `, would start now, or with --what-fits,
which would. Nothing is created. See gangctl fit --help for what the answers mean.`
		sub.Example = "  # would 4 workers with 2 GPUs each start now?\n  gangctl fit " + w.Name + " --workers 4 --gpus 2\n\n  # what would?\n  gangctl fit " + w.Name + " --what-fits"
		sub.Args = func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("fit %s takes no arguments, got %q", w.Name, args[0]).WithHint("of a job that is there: gangctl why-pending %s", shell.Quote(args[0]))
			}
			return nil
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

// newCommand returns a command that answers for a kind of job, by the name that submit has for it.
func newCommand(f *cmdutil.Factory, kind string, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO}
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.gpus = cmd.Flags().Changed("gpus")
			if o.WhatFits && cmd.Flags().Changed("workers") {
				return failure.Usagef("--workers has no effect with --what-fits: their number is the answer").WithHint("leave out one of the two flags")
			}
			if err := o.Output.Validate(); err != nil {
				return err
			}
			if err := o.flags.Prepare(f); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.flags = submit.NewFitFlags(f, cmd, kind)
	cmd.Flags().BoolVar(&o.WhatFits, "what-fits", false, "Report what would start now, by the size of a worker")
	o.Output.AddFlags(cmd, printer.WithTemplates(printer.JSON, printer.YAML)...)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	check, err := o.flags.NewCheck(ctx)
	if err != nil {
		return err
	}
	if o.WhatFits {
		return o.whatFits(ctx, check)
	}
	a, err := check.Answer(ctx, submit.Shape{}, diagnose.Options{})
	if err != nil {
		return err
	}
	if err := cmdutil.PrintAnswer(o.IO, &o.Output, a, text.Options{}); err != nil {
		return err
	}
	return cmdutil.ExitError(a.Exit)
}

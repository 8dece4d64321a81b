// Package resize is `gangctl resize`: it changes a job and its gang as one operation, whoever made them.
//
// A run has the steps of a submission, each with a file of its name: read the job, its gang and the cluster; plan what becomes of them
// (package resize of pkg/submit); rehearse whether it fits and whether the API server takes it; apply it. What is being done is kept on the
// job, so that a run which was killed is completed by the next.
package resize

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"   // change
	dryRunClient dryRun = "client" // show what the job would be
	dryRunServer dryRun = "server" // let the server check it and store nothing
	dryRunFit    dryRun = "fit"    // report whether the gang would start now
)

// Options are what the command works with.
type Options struct {
	cmdutil.JobOptions

	Flags  *submit.ResizeFlags
	DryRun dryRun
	Diff   bool
	// AnyFit changes the job even where its gang would not start now.
	AnyFit bool
	// Recreate lets a job that cannot be changed be deleted and made again.
	Recreate bool
	// Abort takes back a change that an earlier run has begun.
	Abort bool
	// Yes does what an earlier run has kept without a prompt.
	Yes      bool
	Prompter prompt.Prompter
	// Timeout is how long the pods of a suspended job may take to end, Interval how often they are looked for.
	Timeout, Interval time.Duration
	Output            printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Interval: time.Second, Prompter: prompt.New(f.IO)}
	cmd := &cobra.Command{
		Use:   "resize NAME",
		Short: "Change a job's size, requests, place, priority or queue",
		Long: `Change how many members a job has, what they request or where they may run, together with its gang: a job of any kind, in any dialect,
whoever made it. The flags are those of submit; what has no flag stays.

It is one operation. First it is checked whether the gang would start now; --no-fit does without. Of a job that is suspended already, and stays
so, it is only noted that it would not start if it were resumed. Then the job is suspended until its pods are gone, the PodGroup and the job are
changed, and the job goes on. If a step fails, those before it are undone. A run that was killed half way is completed by running resize again, without flags or with the same, and taken back with --abort: until then the
job is suspended, as it was, and its annotation ` + resize.Annotation + ` has what it is to become. What members have not saved is lost, as with suspend.

What operators derive from the size of a job follows by itself, and so does what submit wrote for a Job of Kubernetes. Variables and arguments
with a count that were written by hand stay, with a warning each. A job that was changed by another client meanwhile is left alone,
and what is different is shown.

Some jobs cannot be changed: those of operators that do not know suspend, most of what is in the pods of a Job of Kubernetes, and how many members
a JobSet or a TrainJob has and what they request. With --recreate, such a job is deleted and made again under its name.`,
		Example: `  # half as many workers
  gangctl resize llama --workers 2

  # fewer GPUs for each, and would it start now?
  gangctl resize llama --gpus 4 --dry-run=fit

  # fewer workers in a group of a RayCluster that is called gpu
  gangctl resize raycluster/llama --replicas gpu=2

  # what would change?
  gangctl resize llama --workers 2 --memory 64Gi --diff`,
		SuggestFor: []string{"scale", "edit", "patch", "scontrol", "qalter", "update"},
	}
	o.Flags = submit.NewResizeFlags(cmd.Flags())
	o.addFlags(cmd)
	o.Bind(cmd, f, func(cmd *cobra.Command) error { return o.validate(cmd) }, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flagvalue.Enum(cmd, flags, &o.DryRun, "dry-run", dryRunNone, "Change nothing", dryRunNone, dryRunClient, dryRunServer, dryRunFit)
	flags.BoolVar(&o.Diff, "diff", false, "Show what would change, and change nothing")
	flags.BoolVar(&o.AnyFit, "no-fit", false, "Change the job even if its gang would not start now")
	flags.BoolVar(&o.Recreate, resize.FlagRecreate, false, "Delete a job that cannot be changed, and make it again under its name")
	flags.BoolVar(&o.Abort, "abort", false, "Take back a change that has begun and is not done")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "Do what an earlier run has begun without confirmation")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long the pods may take to end")
	o.Output.AddFlags(cmd, printer.YAML, printer.JSON)
}

func (o *Options) validate(cmd *cobra.Command) error {
	switch {
	case o.Abort && (o.Recreate || o.Diff || o.DryRun != dryRunNone):
		return failure.Usagef("--abort goes with none of --recreate, --diff and --dry-run: it takes a change back").WithHint("leave out the others")
	case o.Timeout <= 0:
		return failure.Usagef("--timeout %s: must be greater than zero, such as 10m", o.Timeout)
	case o.Diff && (o.DryRun != dryRunNone || !o.Output.IsTable()):
		return failure.Usagef("--diff goes with neither --dry-run nor --output: it shows the difference").WithHint("leave out one of them")
	case o.AnyFit && o.DryRun == dryRunFit:
		return failure.Usagef("--no-fit and --dry-run=fit cannot be used together").WithHint("leave out one of them")
	case !o.Output.IsTable() && o.DryRun == dryRunNone:
		return failure.Usagef("--output has no effect without --dry-run").WithHint("see the job with `gangctl get %s -o yaml`", o.Name)
	}
	if err := o.Flags.Validate(); err != nil {
		return err
	}
	return o.Output.Validate()
}

// run is every resize. It ends after planning with --diff and --dry-run=client, and after rehearsing with the other dry runs.
func (o *Options) run(ctx context.Context) error {
	t, err := o.read(ctx)
	if errors.Is(err, errRemade) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.Abort {
		return o.abort(ctx, t)
	}
	p, err := o.plan(t)
	if err != nil {
		return err
	}
	switch {
	case !p.Changed() && t.begun == nil && o.DryRun != dryRunFit:
		_, err := fmt.Fprintf(o.IO.Out, "%s unchanged\n", t.job.Ref())
		return err
	case o.Diff:
		return o.printDiff(p)
	case o.DryRun == dryRunClient:
		return o.print(p, "resized (dry run)")
	case o.DryRun == dryRunFit:
		return o.rehearseFit(ctx, t, p)
	}
	if err := o.confirmBegun(t, p); err != nil {
		return err
	}
	a := newApplier(t.client, o.IO, t.job, p, o.Timeout, o.Interval)
	if p.Recreate != "" || o.Recreate && p.Restarts && t.job.BatchJob != nil {
		return o.recreate(ctx, a, t)
	}
	if err := a.rehearse(ctx); err != nil {
		return o.orRecreate(ctx, a, t, err)
	}
	if o.DryRun == dryRunServer {
		return o.print(p, "resized (server dry run)")
	}
	if err := o.requireFit(ctx, t, p); err != nil {
		return err
	}
	if err := a.apply(ctx); err != nil {
		return o.orRecreate(ctx, a, t, err)
	}
	return o.report(t, p)
}

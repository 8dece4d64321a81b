// Package check is `gangctl check`.
package check

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/setup/check/smoke"
)

// CodeFailed is the exit code of a check that failed.
const CodeFailed failure.Code = 5

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Version   version.Info
	Suffix    func() string
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	// Before checks what has to be true before an installation, in the namespace Target.
	Before bool
	Target string
	// Smoke places a gang, with Scheduler and Image.
	Smoke            bool
	Scheduler, Image string
	Timeout          time.Duration
	Output           printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Version: f.Version}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that gangs can run on a cluster, or that gangctl can be installed there",
		Long: `Check what has to be true so that gangs run: the API server, versions, your rights, custom resources and whose they are,
schedulers and operators that live, their rights rule by rule, devices, clocks. Nothing is changed. What a component may not do
is printed as the YAML that grants it, and no more than it. A check that could not be made is reported, and counts as failed.
Of each kind of job that is served it is reported whether it would be a gang: what makes its pods, and which scheduler starts them together.

--pre looks at what matters before 'gangctl install scheduler': above all whether you may write everything that it writes; all
that you may not is reported at once, with the YAML that an administrator can apply.

--smoke places a gang of two small pods in the namespace of -n, waits until both run, reports how long that took, and deletes it.

The exit code is 5 if a check failed.`,
		Example: `  # is everything there that gangs need?
  gangctl check

  # may I install the gang scheduler here?
  gangctl check --pre

  # does it place gangs, in this namespace?
  gangctl check --smoke -n research

  # for a program
  gangctl check -o json`,
		SuggestFor: []string{"doctor", "diagnose", "healthcheck", "preflight", "verify", "sdiag"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("check takes no arguments, got %q", args[0])
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Namespace, o.Client, o.Suffix = f.Namespace, f.Client, f.Suffix
			if err := o.validate(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Before, "pre", false, "Check what has to be true before the gang scheduler is installed, in the namespace of -n (default: "+install.DefaultNamespace+")")
	flags.BoolVar(&o.Smoke, "smoke", false, "Place a gang of two pods, wait until both run, and delete it")
	flags.StringVar(&o.Scheduler, "scheduler", "", "With --smoke: scheduler of the gang (default: "+install.SchedulerInstance+")")
	flags.StringVar(&o.Image, "smoke-image", smoke.Image, "With --smoke: image of the pods; it has to run until it is stopped")
	flags.DurationVar(&o.Timeout, "timeout", time.Minute, "With --smoke: how long the gang may take to run")
	o.Output.AddFlags(cmd, printer.WithTemplates(printer.JSON, printer.YAML)...)
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	typed := cmd.Flags().Changed // a default from the settings that does not apply is no mistake
	o.Target = install.DefaultNamespace
	switch {
	case o.Before && o.Smoke:
		return failure.Usagef("--pre and --smoke cannot be used together: before the installation no scheduler places gangs").WithHint("leave out one of them")
	case typed("timeout") && !o.Smoke:
		return failure.Usagef("--timeout has no effect without --smoke").WithHint("add --smoke, or leave out --timeout")
	case typed("smoke-image") && !o.Smoke:
		return failure.Usagef("--smoke-image has no effect without --smoke").WithHint("add --smoke, or leave out --smoke-image")
	case typed("scheduler") && !o.Smoke:
		return failure.Usagef("--scheduler has no effect without --smoke").WithHint("add --smoke, or leave out --scheduler")
	case o.Smoke && o.Timeout < time.Second:
		return failure.Usagef("--timeout %s: must be 1s or more", o.Timeout)
	case o.Smoke && o.Image == "":
		return failure.Usagef("--smoke-image: must name an image")
	}
	if o.Before && typed("namespace") {
		var err error
		if o.Target, err = o.Namespace(); err != nil {
			return err
		}
	}
	if o.Scheduler == "" {
		o.Scheduler = install.SchedulerInstance
	}
	return o.Output.Validate()
}

// Package upgrade is `gangctl upgrade`.
package upgrade

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/install"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO      *iostreams.IOStreams
	Client  func() (*kube.Client, error)
	Version string

	Flags install.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Client: f.Client, Version: f.Version.Version}
	cmd := &cobra.Command{
		Use:   "upgrade [scheduler]",
		Short: "Bring the installed scheduler to the version of this gangctl",
		Long: `Bring the installed gang scheduler to the version of this gangctl, and show what changes in each object. What it
was installed with stays, except for flags that are given again; objects that are no longer shipped are pruned.

While the new pod takes over, gangs that run are untouched, and those that wait go on waiting. A gangctl that is
older than the scheduler is refused.`,
		Example: `  # what would change, field by field
  gangctl upgrade --diff

  # upgrade, and wait until the new version is ready
  gangctl upgrade`,
		Args: func(_ *cobra.Command, args []string) error {
			return install.OnlyScheduler("upgrade", args)
		},
		Annotations:       map[string]string{config.OnlyTyped: "true"},
		ValidArgsFunction: install.CompleteScheduler,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if runF != nil {
			return runF(cmd.Context(), o)
		}
		return o.run(cmd)
	}
	o.Flags.Add(cmd)
	return cmd
}

func (o *Options) run(cmd *cobra.Command) error {
	typed := cmd.Flags().Changed
	// Mistakes on the command line are reported before the cluster is read.
	if _, err := o.Flags.Complete(typed, install.Defaults()); err != nil {
		return err
	}
	ctx := cmd.Context()
	client, err := o.Client()
	if err != nil {
		return err
	}
	found, err := install.Find(ctx, client)
	if err != nil {
		return err
	}
	if found.Namespace == "" {
		found.Warn(o.IO.ErrOut)
		return failure.Errorf("the scheduler is not installed on this cluster").WithHint("install it: gangctl install scheduler")
	}
	settings, err := o.Flags.Complete(typed, found.Settings)
	if err != nil {
		return err
	}
	if err := found.KnowsImage(settings, typed, o.Version); err != nil {
		return err.WithHint("name it: gangctl upgrade --image IMAGE")
	}
	namespace := found.Namespace
	if typed("namespace") {
		namespace = o.Flags.Namespace(cmd.Flags())
	}
	scheduler, err := settings.Scheduler(namespace, o.Version)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.IO.ErrOut, "upgrading gang-scheduler in namespace %s from %s to %s\n", namespace, found.Version, o.Version)
	i := &install.Installer{IO: o.IO, Client: client, Flags: &o.Flags, Show: true}
	return i.Apply(ctx, scheduler, found)
}

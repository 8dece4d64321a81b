// Package uninstall is `gangctl uninstall`.
package uninstall

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/install"
)

// defaultTimeout is how long the objects may take to be gone.
const defaultTimeout = 2 * time.Minute

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunServer dryRun = "server"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO     *iostreams.IOStreams
	Client func() (*kube.Client, error)
	// Prompter prompts the user.
	Prompter prompt.Prompter

	DryRun     dryRun
	DeleteCRDs bool
	Confirm    string
	Timeout    time.Duration
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	return newCommand(f, prompt.New(f.IO), runF)
}

func newCommand(f *cmdutil.Factory, prompter prompt.Prompter, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Client: f.Client, Prompter: prompter}
	cmd := &cobra.Command{
		Use:   "uninstall [scheduler]",
		Short: "Take the gang scheduler away",
		Long: `Take everything away that any version of gangctl has installed of the gang scheduler: found by its labels,
deleted in reverse order, and looked for again at the end, with the key that the scheduler made. It is refused while pods use it.

PodGroups and their definition stay, because other programs may use them. With --delete-crds they go, too, all of
them; to confirm, type the definition's name or give it with --confirm.`,
		Example: `  # what would be deleted
  gangctl uninstall --dry-run=server

  # everything, with all PodGroups of all namespaces
  gangctl uninstall --delete-crds --confirm podgroups.scheduling.x-k8s.io`,
		Args: func(_ *cobra.Command, args []string) error {
			return install.OnlyScheduler("uninstall", args)
		},
		Annotations:       map[string]string{config.OnlyTyped: "true"},
		ValidArgsFunction: install.CompleteScheduler,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	flags.SortFlags = false
	flagvalue.Enum(cmd, flags, &o.DryRun, "dry-run", dryRunNone, "Have the API server try it, and delete nothing", dryRunNone, dryRunServer)
	flags.BoolVar(&o.DeleteCRDs, "delete-crds", false, "Delete the PodGroup definition, too, and with it every PodGroup")
	flags.StringVar(&o.Confirm, "confirm", "", "Name of the definition that --delete-crds may delete, instead of typing it")
	flags.DurationVar(&o.Timeout, "timeout", defaultTimeout, "How long the objects may take to be gone")
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("confirm") && !o.DeleteCRDs:
		return failure.Usagef("--confirm has no effect without --delete-crds").WithHint("leave it out, or add --delete-crds")
	case o.Timeout <= 0:
		return failure.Usagef("--timeout %s: must be greater than zero, such as 2m", o.Timeout)
	case cmd.Flags().Changed("namespace"):
		return failure.Usagef("--namespace has no effect: what is installed is found by its labels").WithHint("leave it out")
	}
	return nil
}

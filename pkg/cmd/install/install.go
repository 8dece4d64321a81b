// Package install is `gangctl install`: what gangctl puts on a cluster, and how it is set.
package install

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// NewCommand returns the command with one subcommand for each thing that can be installed.
func NewCommand(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the gang scheduler or the training operator on a cluster",
		Long: `Install what gangctl needs on a cluster. Running it again changes nothing. The scheduler is taken away by
'gangctl uninstall'.`,
		Example: `  # the gang scheduler
  gangctl install scheduler

  # what would be installed, without a cluster
  gangctl install scheduler --export`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("install %q: there is nothing of that name to install", args[0]).WithHint("see 'gangctl install --help'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewSchedulerCommand(f, nil), NewOperatorCommand(f, nil), NewImagesCommand(f))
	return cmd
}

// noArguments is what commands take that are told everything by flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0]).WithHint("see '%s --help'", cmd.CommandPath())
	}
	return nil
}

package config

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func newUseProfile(options func() *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "use-profile NAME",
		Short: "Choose the profile that counts from now on",
		Long: `Choose the profile of the settings file that counts from now on. --profile and GANGCTL_PROFILE choose another for one run or
one shell. A profile is made by setting a key in it.`,
		Example: `  # jobs are big from now on
  gangctl config use-profile big

  # make a profile, and see what would count
  gangctl config set gpus 8 --profile big && gangctl config view --profile big`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("config use-profile needs one name, got %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return options().completeProfiles(args, prefix)
		},
		RunE: func(_ *cobra.Command, args []string) error { return options().useProfile(args[0]) },
	}
}

func (o *Options) useProfile(name string) error {
	if err := o.edit(func(edit *config.Edit) error { return edit.UseProfile(name) }); err != nil {
		return err
	}
	o.noteOverride("", "profile")
	_, err := fmt.Fprintf(o.IO.Out, "profile %s chosen in %s\n", name, o.Path)
	return err
}

package config

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func newSet(options func() *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE…",
		Short: "Give a flag a default",
		Long: `Give a flag a default in the settings file, or with --profile in a profile of it, which is made if need be. KEY is the flag
without its dashes. A value that a command would refuse is refused here. A flag that can be repeated takes several values.

The file is replaced as a whole and is readable by you only; comments in it stay.`,
		Example: `  # jobs of this user go to a namespace
  gangctl config set namespace research

  # and in the profile big have eight GPUs a worker
  gangctl config set gpus 8 --profile big`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return failure.Usagef("config set needs a key and a value")
			}
			return nil
		},
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			return options().set(cmd, args[0], args[1:])
		},
	}
}

func (o *Options) set(cmd *cobra.Command, key string, values []string) error {
	profile, name, err := place(cmd, key)
	if err != nil {
		return err
	}
	if err := config.Validate(cmd.Root(), name, values); err != nil {
		return err
	}
	edit, err := config.Open(o.Path)
	if err != nil {
		return err
	}
	if err := edit.Set(profile, name, values, config.Plain(cmd.Root(), name)); err != nil {
		return err
	}
	if err := edit.Save(); err != nil {
		return err
	}
	o.noteOverride(profile, name)
	_, err = fmt.Fprintf(o.IO.Out, "%s set in %s\n", shown(profile, name), o.Path)
	return err
}

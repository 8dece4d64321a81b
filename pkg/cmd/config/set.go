package config

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func newSet(options func() *Options) *cobra.Command {
	cmd := &cobra.Command{
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
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if refused := refuseDashed(cmd, err); refused != nil {
			return refused
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// refuseDashed is the error for a value that begins with a dash, such as -1, and was read as flags: what the key takes, or how the value is typed.
// It is nil for any other error.
func refuseDashed(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if typed := cmd.Flags().Args(); len(typed) != 1 || !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() == "" {
		return nil
	}
	key, value := cmd.Flags().Arg(0), "-"+unknown.GetSpecifiedShortnames()
	_, name, misplaced := place(cmd, key)
	if misplaced != nil {
		return misplaced
	}
	if refused := config.Validate(cmd.Root(), name, []string{value}); refused != nil {
		return refused
	}
	return failure.Usagef("%w", err).WithHint("if %s is the value, put -- before it: %s %s -- %s", value, cmd.CommandPath(), key, value)
}

func (o *Options) set(cmd *cobra.Command, key string, values []string) error {
	profile, name, err := place(cmd, key)
	if err != nil {
		return err
	}
	if err := config.Validate(cmd.Root(), name, values); err != nil {
		return err
	}
	if err := o.edit(func(edit *config.Edit) error { return edit.Set(profile, name, values, config.Plain(cmd.Root(), name)) }); err != nil {
		return err
	}
	o.noteOverride(profile, name)
	_, err = fmt.Fprintf(o.IO.Out, "%s set in %s\n", shown(profile, name), o.Path)
	return err
}

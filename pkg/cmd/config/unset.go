package config

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func newUnset(options func() *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "unset KEY",
		Short: "Take a setting away",
		Long: `Take a key out of the settings file, or with --profile out of a profile of it, with the comments that belong to it. The key need
not be one that gangctl knows; one that is not there is an error. To choose no profile any more, unset the key profile.`,
		Example: `  # no default image any more
  gangctl config unset image

  # no profile any more, unless one is named
  gangctl config unset profile`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("config unset needs one key, got %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return options().completeSet(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return options().unset(cmd, args[0]) },
	}
}

func (o *Options) unset(cmd *cobra.Command, key string) error {
	profile, name, err := place(cmd, key)
	if err != nil {
		return err
	}
	if err := o.edit(func(edit *config.Edit) error { return edit.Unset(profile, name) }); err != nil {
		return err
	}
	o.noteOverride(profile, name)
	_, err = fmt.Fprintf(o.IO.Out, "%s unset in %s\n", shown(profile, name), o.Path)
	return err
}

// completeSet completes the keys that the file, or a profile of it, holds.
func (o *Options) completeSet(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := config.Read(o.Path)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	profile, _, err := place(cmd, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys []cobra.Completion
	for _, key := range c.Held(profile) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// Package config is `gangctl config`: the user's settings, shown and changed.
package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// Options are the dependencies and flags of the commands.
type Options struct {
	IO      *iostreams.IOStreams
	Getenv  func(string) string
	Environ func() []string
	Path    string
}

// verbs are the commands.
const verbs = "view, set, unset, use-profile, path"

// NewCommand returns the command with its verbs. None of them reads a cluster, and none needs settings that are whole.
func NewCommand(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change the settings: defaults of flags, and profiles",
		Long: `Show and change the settings: defaults of flags, and profiles of such defaults.

A flag that is typed wins over GANGCTL_FLAG of the environment, that over the profile, that over the rest of the file, and that
over what is built in.`,
		Example: `  # what counts here, and why
  gangctl config view --show-origin

  # an image for every job that names none
  gangctl config set image tensorflow/tensorflow:2.17.0-gpu`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.Usagef("config needs a verb").WithHint("the verbs are: %s", verbs)
			}
			return failure.Usagef("config %q: must be one of %s", args[0], verbs)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &Options{IO: f.IO, Getenv: f.Getenv, Environ: f.Environ}
	path := func() *Options { // the factory learns it while the tree is made
		o.Path = f.ConfigPath
		return o
	}
	cmd.AddCommand(newView(path), newSet(path), newUnset(path), newUseProfile(path), newPath(path))
	return cmd
}

// place splits `profiles.NAME.KEY`, as warnings write it; other keys are of the profile that --profile names, or of none.
func place(cmd *cobra.Command, key string) (profile, name string, err error) {
	if flag := cmd.Flag("profile"); flag != nil {
		profile = strings.ToLower(flag.Value.String())
	}
	rest, inProfile := strings.CutPrefix(key, "profiles.")
	if !inProfile {
		return profile, strings.ToLower(key), nil
	}
	dot := strings.LastIndex(rest, ".")
	switch {
	case dot <= 0:
		return "", "", failure.Usagef("key %q: must be KEY, or profiles.NAME.KEY", key)
	case profile != "":
		return "", "", failure.Usagef("key %q names a profile, and so does --profile", key)
	}
	return strings.ToLower(rest[:dot]), strings.ToLower(rest[dot+1:]), nil
}

// shown is a key as messages write it.
func shown(profile, key string) string {
	if profile == "" {
		return key
	}
	return "profiles." + profile + "." + key
}

// edit changes the settings file.
func (o *Options) edit(change func(*config.Edit) error) error {
	edit, err := config.Open(o.Path)
	if err != nil {
		return err
	}
	if err := change(edit); err != nil {
		return err
	}
	return edit.Save()
}

// noteOverride reports what keeps a setting that has just been made from counting.
func (o *Options) noteOverride(profile, key string) {
	c, err := config.Load(o.Path, o.Getenv, "")
	if err != nil {
		fmt.Fprintf(o.IO.ErrOut, "warning: %v\n", err)
		return
	}
	if wins := c.Overridden(profile, key); wins != "" {
		fmt.Fprintf(o.IO.ErrOut, "note: %s is set too, and wins\n", wins)
	}
}

// completeKeys completes what can be set, and after a key the values that its flag has.
func completeKeys(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		_, name, err := place(cmd, args[0])
		complete := config.Completion(cmd.Root(), name)
		if err != nil || complete == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		values, directive := complete(cmd, nil, prefix)
		return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !strings.HasPrefix(value, prefix) }), directive
	}
	var keys []cobra.Completion
	for _, key := range config.Keys(cmd.Root()) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, cobra.CompletionWithDesc(key, config.Usage(cmd.Root(), key)))
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// completeProfiles completes the profiles of the file, silently.
func (o *Options) completeProfiles(args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := config.Read(o.Path)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := c.Profiles()
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), cobra.ShellCompDirectiveNoFileComp
}

package config

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newPath(options func() *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print where the settings file is",
		Long:  "Print the path of the settings file, whether it exists or not: $XDG_CONFIG_HOME/gangctl/config.yaml, or ~/.config/gangctl/config.yaml.",
		Example: `  # edit it by hand
  "${EDITOR:-vi}" "$(gangctl config path)"

  # is there one?
  gangctl config path | xargs ls -l`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			o := options()
			_, err := fmt.Fprintln(o.IO.Out, o.Path)
			return err
		},
	}
}

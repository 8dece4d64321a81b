package root

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// refuseEmpty refuses what was typed and is empty: mostly a variable of a shell that is not set. Without a name `submit` would make one up, and without a
// file --from would read the cluster. What comes after -- is the command of a job.
func refuseEmpty(cmd *cobra.Command, args []string) (err error) {
	for i, arg := range args {
		if at := cmd.ArgsLenAtDash(); arg == "" && (at < 0 || i < at) {
			return failure.Usagef("argument %d is empty", i+1).WithHint("give it a value, or leave it out")
		}
	}
	everywhere := cmd.Root().PersistentFlags() // those of the connection are as with kubectl, but an empty namespace, which is mostly a variable that is not set
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		if err == nil && (everywhere.Lookup(flag.Name) == nil || flag.Name == "namespace") && (value == "" || value == "[]") && !config.MayBeEmpty(flag.Name) {
			err = failure.Usagef("--%s is empty", flag.Name).WithHint("give it a value, or leave it out")
		}
	})
	return err
}

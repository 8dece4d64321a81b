// Package topic holds the help topics of gangctl that are not about one command: `gangctl help TOPIC`.
package topic

import "github.com/spf13/cobra"

// All are the topics, in the order of their names. They are commands that cannot be run, which cobra takes for topics.
func All() []*cobra.Command {
	return []*cobra.Command{newDialects(), newEnvironment(), newFormatting()}
}

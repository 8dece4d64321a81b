// Package help holds the help topics of gangctl, which are not about one command: `gangctl help TOPIC`.
package help

import "github.com/spf13/cobra"

// Topics returns the topics, in the order of their names. A command that cannot be run is a topic to cobra.
func Topics() []*cobra.Command {
	return []*cobra.Command{newDialects(), newEnvironment(), newExitCodes(), newFormatting()}
}

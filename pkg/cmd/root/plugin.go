package root

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// plugin is what kubectl looks for when somebody types `kubectl gang`.
const plugin = "kubectl-gang"

// nameAs makes the help call the program what the user called it: `kubectl gang` if it runs as kubectl's plugin.
func nameAs(cmd *cobra.Command, program string) {
	if strings.TrimSuffix(filepath.Base(program), ".exe") == plugin {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gang"}
	}
}

package help

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// variables are the environment variables that gangctl respects, and what each does.
var variables = [][2]string{
	{"KUBECONFIG", "kubeconfig files, parted as in PATH, that are read as one; --kubeconfig wins. Without either: ~/.kube/config. Without a kubeconfig, in a pod, the service account counts"},
	{"GANGCTL_FLAG", "default of --flag, with underscores for dashes: GANGCTL_IMAGE for --image, GANGCTL_GPU_RESOURCE for --gpu-resource. It wins over the settings file; what is typed wins over it"},
	{"GANGCTL_PROFILE", "profile of the settings file; --profile wins"},
	{"XDG_CONFIG_HOME", "where the settings file is, $XDG_CONFIG_HOME/gangctl/config.yaml; ~/.config if it is empty or no absolute path; without HOME there are no settings then"},
	{"HOME", "what ~ is"},
	{"NO_COLOR", "no colour, if it is not empty; --color wins (https://no-color.org)"},
	{"TERM", "no colour, if it is dumb; --color wins"},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "proxy to the API server; --proxy-url and the kubeconfig's proxy-url win"},
	{"KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT", "where the API server is, in a pod"},
}

func newEnvironment() *cobra.Command {
	var long strings.Builder
	long.WriteString("The environment variables that gangctl respects. `gangctl config view --show-origin` shows which one counts and why.\n")
	for _, v := range variables {
		fmt.Fprintf(&long, "\n    %s\n        %s\n", v[0], v[1])
	}
	long.WriteString(`
A default for a flag is looked for in this order: the command line, the environment, the profile, the rest of the settings file,
what is built in. Flags that are about one run cannot be set: GANGCTL_WAIT and the like are warned of and have no effect.

gangctl-sandbox keeps what it runs in $XDG_STATE_HOME/gangctl/sandbox, or ~/.local/state/gangctl/sandbox.`)
	return &cobra.Command{Use: "environment", Short: "Which environment variables count", Long: long.String()}
}

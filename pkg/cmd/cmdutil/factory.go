// Package cmdutil holds what the commands share: their dependencies, names on the command line and their completion, and how an
// answer is printed.
package cmdutil

import (
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// Factory holds the dependencies of the commands. Nothing in it does work before it is called.
type Factory struct {
	IO *iostreams.IOStreams
	// Program is how the program was called, argv[0]; it may be empty.
	Program string
	// Args is the command line without the program's name.
	Args []string
	// Getenv reads the environment.
	Getenv func(string) string
	// Environ lists the environment, as NAME=VALUE; nil for no such list.
	Environ func() []string
	// Version is the build that runs.
	Version version.Info
	// Suffix makes five random characters for a generated name.
	Suffix func() string

	// Namespace is the namespace of the run: -n, else the context's, else "default". It needs no cluster.
	Namespace func() (string, error)
	// Client opens the connection to the cluster.
	Client func() (*kube.Client, error)
	// ConfigPath is the file that holds the user's settings, whether it exists or not.
	ConfigPath string
}

// Package command is the command line of gangctl-sandbox.
package command

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"

	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/session"
)

// Env is the commands' environment.
type Env struct {
	IO     *iostreams.IOStreams
	Getenv func(string) string
}

// NewRoot returns `gangctl-sandbox`.
func NewRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "gangctl-sandbox",
		Short: "A real Kubernetes control plane on a machine without a cluster",
		Long: `gangctl-sandbox runs a real Kubernetes control plane on this machine: etcd, the
API server, the controller manager, a scheduler and the Kubeflow Training
Operator, with simulated nodes. It needs no root and no containers, listens on
127.0.0.1 only and keeps everything in one directory.`,
		Version:       version.Get().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(env.IO.Out)
	root.SetErr(env.IO.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return failure.Usagef("%w", err).WithHint("see %s --help", cmd.CommandPath())
	})
	root.AddCommand(newUp(env), newDown(env), newStatus(env), newNode(env), newDemo(env), newSupervise(env))
	return root
}

// dataDir adds --data-dir to a command; the function opens it.
func dataDir(cmd *cobra.Command, env Env) func() (session.Session, error) {
	path := cmd.PersistentFlags().String("data-dir", datadir.DefaultPath(env.Getenv), "directory that holds the sandbox")
	return func() (session.Session, error) {
		dir, err := datadir.New(*path)
		return session.Session{Dir: dir}, err
	}
}

// knownCommand allows groups of commands no argument, which shows the help.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.Usagef("unknown command %q of %s", args[0], cmd.CommandPath()).WithHint("see %s --help", cmd.CommandPath())
	}
	return nil
}

// noArgs and someArgs are cobra's checks with our exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args).WithHint("see %s --help", cmd.CommandPath())
	}
	return nil
}

func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return failure.Usagef("%s needs at least one name", cmd.CommandPath()).WithHint("see %s --help", cmd.CommandPath())
	}
	return nil
}

package root

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
)

// addCompletion adds cobra's own completion command, with an error for a shell it does not know, and examples.
func addCompletion(root *cobra.Command) {
	root.SetCompletionCommandGroupID(groupSettings)
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has just added it
	}
	completion.Use = "completion SHELL"
	completion.Example = `  # in this bash session
  source <(gangctl completion bash)

  # in every zsh session
  gangctl completion zsh > "${fpath[1]}/_gangctl"`
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(_ *cobra.Command, args []string) error {
		const shells = "the shells are: bash, zsh, fish, powershell"
		if len(args) == 0 {
			return failure.Usagef("completion needs a shell").WithHint(shells)
		}
		return failure.Usagef("no completion for %q", args[0]).WithHint(shells)
	}
}

// completeContexts completes --context from the kubeconfig.
func completeContexts(cmd *cobra.Command, cluster *kube.Factory) {
	err := cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		contexts, err := cluster.Contexts()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // silent: a prompt is no place for errors
		}
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist, or is registered twice: a mistake in the program
	}
}

// fileFlags are the flags, of any command, that name a file or a directory.
var fileFlags = []string{"kubeconfig", "certificate-authority", "client-certificate", "client-key", "from", "save", "dir", "filename"}

// completeFiles completes files for the flags that name one, in the whole tree, and for nothing else.
func completeFiles(cmd *cobra.Command) {
	for _, name := range fileFlags {
		if _, known := cmd.GetFlagCompletionFunc(name); known || cmd.Flag(name) == nil {
			continue
		}
		err := cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		})
		if err != nil {
			panic(err) // the flag exists and has none
		}
	}
	for _, sub := range cmd.Commands() {
		completeFiles(sub)
	}
}

// finish walks the whole tree: bad arguments become usage errors, every usage error says where to read on, and completion
// sees the user's settings.
func finish(cmd *cobra.Command, settings func(*cobra.Command) error) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, words []string) error {
			err := args(cmd, words)
			if err == nil || failure.From(err).Code == failure.CodeUsage {
				return err
			}
			return failure.Usagef("%w", err)
		}
		cmd.Args = pointToHelp(cmd.Args)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = pointToHelp(run)
	}
	if complete := cmd.ValidArgsFunction; complete != nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, words []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if err := settings(cmd); err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(cmd, words, prefix)
		}
	}
	for _, sub := range cmd.Commands() {
		finish(sub, settings)
	}
}

// pointToHelp adds a hint to usage errors that have none.
func pointToHelp(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		err := do(cmd, words)
		if e := failure.From(err); e != nil && e.Code == failure.CodeUsage && e.Hint == "" {
			return e.WithHint("see '%s --help'", cmd.CommandPath())
		}
		return err
	}
}

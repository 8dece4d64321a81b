package root

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/cmd/whypending"
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
	for shell, example := range shellExamples() {
		script, _, err := completion.Find([]string{shell})
		if err != nil {
			panic(err) // as above
		}
		script.Example = example
	}
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(_ *cobra.Command, args []string) error {
		const shells = "the shells are: bash, zsh, fish, powershell"
		if len(args) == 0 {
			return failure.Usagef("completion needs a shell").WithHint(shells)
		}
		return failure.Usagef("no completion for %q", args[0]).WithHint(shells)
	}
}

// shellExamples are the examples of the commands below completion.
func shellExamples() map[string]string {
	return map[string]string{
		"bash": `  # in this session; the package bash-completion has to be there
  source <(gangctl completion bash)

  # in every session
  gangctl completion bash > ~/.local/share/bash-completion/completions/gangctl`,
		"zsh": `  # in this session
  source <(gangctl completion zsh)

  # in every session
  gangctl completion zsh > "${fpath[1]}/_gangctl"`,
		"fish": `  # in this session
  gangctl completion fish | source

  # in every session
  gangctl completion fish > ~/.config/fish/completions/gangctl.fish`,
		"powershell": `  # in this session
  gangctl completion powershell | Out-String | Invoke-Expression

  # in every session
  gangctl completion powershell >> $PROFILE`,
	}
}

// fileFlags are the flags, of any command, that name a file or a directory.
var fileFlags = []string{"kubeconfig", "certificate-authority", "client-certificate", "client-key", "from", "save", "dir", "file", "filename"}

// labelFlags are the flags, of any command, that name labels of nodes.
var labelFlags = []string{"by", "topology", "topology-preferred", "affinity-domain"}

// values are the completions of the flags, of any command, whose values the cluster, the kubeconfig or the settings know.
func values(f *cmdutil.Factory, cluster *kube.Factory) map[string]cobra.CompletionFunc {
	all := map[string]cobra.CompletionFunc{
		"context": localNames(cluster.Contexts), "cluster": localNames(cluster.Clusters), "user": localNames(cluster.Users),
		"profile": localNames(func() ([]string, error) {
			c, err := config.Read(f.ConfigPath)
			if err != nil {
				return nil, err
			}
			return c.Profiles(), nil
		}),
		"namespace": cmdutil.CompleteNamespaces(f), "queue": cmdutil.CompleteQueues(f), "node": cmdutil.CompleteNodes(f),
		"priority-class": cmdutil.CompletePriorityClasses(f), "service-account": cmdutil.CompleteServiceAccounts(f),
		"role": cmdutil.CompleteRoles(f), "index": cmdutil.CompleteIndexes(f), "gpu-resource": cmdutil.CompleteDevices(f), "data": cmdutil.CompleteClaims(f), "template": submit.CompleteTemplates(f),
		"apply": whypending.CompleteWays(f),
	}
	for _, name := range labelFlags {
		all[name] = cmdutil.CompleteNodeLabels(f)
	}
	for _, name := range fileFlags {
		all[name] = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	return all
}

// localNames completes with names that are found without the cluster.
func localNames(find func() ([]string, error)) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, err := find()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // silent: a prompt is no place for errors
		}
		return cmdutil.FilterCompletions(all, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeValues completes flags by their names in the whole tree, save those of which a command knows more.
func completeValues(cmd *cobra.Command, values map[string]cobra.CompletionFunc, settings func(*cobra.Command) error) {
	for name, value := range values {
		if _, known := cmd.GetFlagCompletionFunc(name); known || cmd.Flag(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, withSettings(value, settings)); err != nil {
			panic(err) // the flag exists and has none
		}
	}
	for _, sub := range cmd.Commands() {
		completeValues(sub, values, settings)
	}
}

// withSettings lets completion see the user's settings: they may name the cluster.
func withSettings(complete cobra.CompletionFunc, settings func(*cobra.Command) error) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if err := settings(cmd); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, prefix)
	}
}

// finish walks the whole tree: bad arguments become usage errors, every usage error reports where to read on, and completion
// sees the user's settings.
func finish(cmd *cobra.Command, settings func(*cobra.Command) error, attribute func(error) error) {
	if validate := cmd.Args; validate != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := validate(cmd, args)
			if err == nil || failure.From(err).Code == failure.CodeUsage {
				return err
			}
			return failure.Usagef("%w", err)
		}
		cmd.Args = pointToHelp(cmd.Args)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = pointToHelp(func(cmd *cobra.Command, args []string) error { return attribute(run(cmd, args)) })
	}
	if cmd.ValidArgsFunction != nil {
		cmd.ValidArgsFunction = withSettings(cmd.ValidArgsFunction, settings)
	}
	for _, sub := range cmd.Commands() {
		finish(sub, settings, attribute)
	}
}

// pointToHelp adds a hint to usage errors that have none.
func pointToHelp(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := do(cmd, args)
		if e := failure.From(err); e != nil && e.Code == failure.CodeUsage && e.Hint == "" {
			return e.WithHint("see '%s --help'", cmd.CommandPath())
		}
		return err
	}
}

package root

import (
	"strings"

	"github.com/spf13/cobra"
)

// usageTemplate is cobra's, without the repetition of the connection flags in every command.
const usageTemplate = `Usage:
  {{if .HasParent}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if not .Groups}}

Commands:{{range $commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasHelpSubCommands}}

Help topics:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasParent}}

Flags of every command (-n, --context, --kubeconfig, --profile, …): {{.Root.CommandPath}} --help{{end}}
`

// addHelp adds cobra's own help command, with an error for a command that is not there.
func addHelp(root *cobra.Command) {
	root.SetHelpCommandGroupID(groupSettings)
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // cobra has just added it
	}
	help.Use = "help [COMMAND… | TOPIC]"
	help.Short, help.Long = "Show the help of a command or a topic", "Show the help of a command, as COMMAND --help does, or of a topic."
	help.ValidArgsFunction = withTopics(root, help.ValidArgsFunction)
	help.Run = nil
	help.RunE = func(_ *cobra.Command, words []string) error {
		target, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 {
			return unknownCommand(target, words[len(words)-1])
		}
		target.InitDefaultHelpFlag()
		return target.Help()
	}
}

// withTopics adds the help topics, which are no commands, to what completes.
func withTopics(root *cobra.Command, complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, words []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, directive := complete(cmd, words, prefix)
		for _, topic := range root.Commands() {
			if len(words) == 0 && topic.IsAdditionalHelpTopicCommand() && strings.HasPrefix(topic.Name(), prefix) {
				all = append(all, cobra.CompletionWithDesc(topic.Name(), topic.Short))
			}
		}
		return all, directive
	}
}

// toleratesSettings reports whether the command explains or completes others, or is there to repair settings, and so must work
// with broken ones.
func toleratesSettings(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		switch cmd.Name() {
		case "help", "completion", "config", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}

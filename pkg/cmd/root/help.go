package root

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// mostColumns is how wide help gets: longer lines are hard to read.
const mostColumns = 120

// addHelp makes the help fit the terminal, whose width in columns is read when it is printed; 0 is no limit. It replaces
// cobra's own help command by one that has an error for a command that is not there.
func addHelp(root *cobra.Command, width func() int) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprint(cmd.OutOrStdout(), helpText(cmd, min(width(), mostColumns)))
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStderr(), usageText(cmd, min(width(), mostColumns)))
		return err
	})
	root.SetHelpCommandGroupID(groupSettings)
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // cobra has just added it
	}
	help.Use = "help [COMMAND… | TOPIC]"
	help.Short, help.Long = "Show the help of a command or a topic", "Show the help of a command, as COMMAND --help does, or of a topic."
	help.Example = "  # of a command\n  gangctl help submit tf\n\n  # of a topic: what exit codes mean\n  gangctl help exit-codes"
	help.ValidArgsFunction = withTopics(root, help.ValidArgsFunction)
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		target, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return unknownCommand(target, args[len(args)-1])
		}
		target.InitDefaultHelpFlag()
		return target.Help()
	}
}

// helpText is the help of a command, or a topic, which has nothing but a text.
func helpText(cmd *cobra.Command, width int) string {
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	text := wrap.Prose(asCalled(cmd, strings.TrimSpace(long)), width) + "\n"
	if cmd.IsAdditionalHelpTopicCommand() {
		return text
	}
	return text + "\n" + usageText(cmd, width)
}

// asCalled is a text in which commands of gangctl stand as the user called the program.
func asCalled(cmd *cobra.Command, text string) string {
	root := cmd.Root()
	if root.CommandPath() == root.Name() {
		return text
	}
	parts := strings.Split(text, root.Name()+" ")
	for i, part := range parts[1:] {
		called := root.Name()
		if slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return firstWord(part) == c.Name() }) { // and not "gangctl submits jobs"
			called = root.CommandPath()
		}
		parts[i+1] = called + " " + part
	}
	return strings.Join(parts, "")
}

// firstWord is what a text begins with, up to what is neither a letter nor a dash.
func firstWord(text string) string {
	if end := strings.IndexFunc(text, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) }); end >= 0 {
		return text[:end]
	}
	return text
}

// usageText is all but the description. The connection flags are not repeated in every command.
func usageText(cmd *cobra.Command, width int) string {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			b.WriteString(title + ":\n" + text + "\n\n")
		}
	}
	use := cmd.CommandPath() + " COMMAND"
	if cmd.HasParent() {
		use = cmd.UseLine()
	}
	section("Usage", wrap.Prose("  "+use, width))
	if len(cmd.Aliases) > 0 {
		section("Aliases", "  "+cmd.NameAndAliases())
	}
	section("Examples", wrap.Shell(asCalled(cmd, cmd.Example), width))
	for _, group := range cmd.Groups() {
		section(strings.TrimSuffix(group.Title, ":"), commands(cmd, width, func(c *cobra.Command) bool {
			return c.GroupID == group.ID && (c.IsAvailableCommand() || c.Name() == "help")
		}))
	}
	if len(cmd.Groups()) == 0 {
		section("Commands", commands(cmd, width, (*cobra.Command).IsAvailableCommand))
	}
	section("Help topics", commands(cmd, width, (*cobra.Command).IsAdditionalHelpTopicCommand))
	if cmd.HasAvailableLocalFlags() {
		section("Flags", wrap.Prose(strings.TrimRight(cmd.LocalFlags().FlagUsages(), " \n"), width))
	}
	if cmd.HasParent() {
		b.WriteString(wrap.Prose("Flags of every command (-n, --context, --kubeconfig, --profile, …): "+cmd.Root().CommandPath()+" --help", width) + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// commands are the commands below one that are shown together, a line each.
func commands(cmd *cobra.Command, width int, shown func(*cobra.Command) bool) string {
	var lines []string
	for _, c := range cmd.Commands() {
		if shown(c) {
			lines = append(lines, fmt.Sprintf("  %-*s  %s", c.NamePadding(), c.Name(), c.Short))
		}
	}
	return wrap.Prose(strings.Join(lines, "\n"), width)
}

// withTopics adds the help topics, which are no commands, to what completes.
func withTopics(root *cobra.Command, complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, directive := complete(cmd, args, prefix)
		for _, topic := range root.Commands() {
			if len(args) == 0 && topic.IsAdditionalHelpTopicCommand() && strings.HasPrefix(topic.Name(), prefix) {
				all = append(all, cobra.CompletionWithDesc(topic.Name(), topic.Short))
			}
		}
		return all, directive
	}
}

// toleratesSettings reports whether the command explains or completes others, is there to repair settings, or is for the report of a bug, and so
// must work with broken ones.
func toleratesSettings(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		switch cmd.Name() {
		case "help", "completion", "config", "version", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}

package howto

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
)

// Command is one gangctl command of a line.
type Command struct {
	// Verb is the command's path below gangctl: submit tf.
	Verb string
	// Args are its arguments, up to --.
	Args []string
	// Flags are what was typed of its flags, by name; of one that is repeated, the last.
	Flags map[string]string
}

// Commands are the commands of gangctl in a line of shell. An error names one that is not there, or a flag that it has not.
func Commands(line string) ([]Command, error) {
	var all []Command
	for _, part := range simple(line) {
		args, err := shell.Split(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		for len(args) > 0 && strings.Contains(args[0], "=") { // variables that are set for the command
			args = args[1:]
		}
		if len(args) > 1 && args[0] == "kubectl" && args[1] == "gang" {
			args = append([]string{"gangctl"}, args[2:]...)
		}
		if len(args) == 0 || args[0] != "gangctl" || len(args) > 1 && args[1] == "scheduler" { // which only the image runs
			continue
		}
		c, err := parse(args[1:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func parse(args []string) (Command, error) {
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: io, Args: args, Getenv: func(string) string { return "" }}
	cmd, rest, err := root.NewCommand(f).Find(args)
	if err != nil {
		return Command{}, err
	}
	if err := cmd.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return Command{}, err
	}
	c := Command{Verb: strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "gangctl"), " "), Args: cmd.Flags().Args(), Flags: map[string]string{}}
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		c.Args = c.Args[:n]
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) { c.Flags[flag.Name] = flag.Value.String() })
	return c, unknownBelow(cmd, c.Args)
}

// unknownBelow finds an argument that is no command below one that has commands and does nothing by itself.
func unknownBelow(cmd *cobra.Command, args []string) error {
	if cmd.HasAvailableSubCommands() && len(args) > 0 {
		return fmt.Errorf("there is no command %s below %s", args[0], cmd.CommandPath())
	}
	return nil
}

// simple splits a line into its simple commands: at operators and at the borders of substitutions, outside of quotes. Redirections
// and comments are left out.
func simple(line string) []string {
	var parts []string
	var part strings.Builder
	var quote rune
	end := func() {
		if text := strings.TrimSpace(part.String()); text != "" {
			parts = append(parts, text)
		}
		part.Reset()
	}
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		next := func(want rune) bool { return i+1 < len(runes) && runes[i+1] == want }
		switch {
		case quote != '\'' && (r == '$' || r == '<') && next('('):
			end()
			quote = 0
			i++
		case quote != 0:
			if r == quote {
				quote = 0
			}
			part.WriteRune(r)
		case r == '\'' || r == '"':
			if closesSubstitution(runes, i) {
				continue
			}
			quote = r
			part.WriteRune(r)
		case r == '#' && (i == 0 || runes[i-1] == ' '):
			end()
			return parts
		case slices.Contains([]rune("|;&)"), r):
			end()
		case r == '>' || r == '<':
			end()
			for i+1 < len(runes) && !slices.Contains([]rune("|;&)"), runes[i+1]) {
				i++
			}
		default:
			part.WriteRune(r)
		}
	}
	end()
	return parts
}

// closesSubstitution reports a double quote around "$(…)": what opened it was left with the substitution's beginning.
func closesSubstitution(runes []rune, i int) bool {
	return i > 0 && runes[i-1] == ')' || i+2 < len(runes) && runes[i] == '"' && runes[i+1] == '$' && runes[i+2] == '('
}

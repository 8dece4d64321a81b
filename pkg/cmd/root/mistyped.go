package root

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
)

// flagHint is what to do about an error of the flags of a command: for one that is not known, which were probably meant.
func flagHint(cmd *cobra.Command, err error) string {
	see := fmt.Sprintf("see '%s --help'", cmd.CommandPath())
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return see
	}
	typed := unknown.GetSpecifiedName()
	var names, meant []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case flag.Hidden:
		case strings.HasPrefix(flag.Name, typed):
			meant = append(meant, flag.Name)
		default:
			names = append(names, flag.Name)
		}
	})
	slices.SortFunc(meant, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	if nearest := suggest.Nearest(typed, names); len(meant) == 0 && nearest != "" {
		meant = []string{nearest}
	}
	if len(meant) == 0 {
		return see
	}
	return fmt.Sprintf("did you mean --%s? %s", strings.Join(meant[:min(len(meant), maxMeant)], " or --"), see)
}

// maxMeant is how many flags a hint names: those that begin as what was typed, the shortest first.
const maxMeant = 3

// unknownCommand is the error of a command that there is not, with those that were probably meant: the one that a slip makes, or all that have it for another
// name or are a little like it.
func unknownCommand(cmd *cobra.Command, name string) error {
	err := failure.Usagef("unknown command %q", name)
	meant := cmd.SuggestionsFor(name)
	if nearest := suggest.Nearest(name, meant); nearest != "" {
		meant = []string{nearest}
	}
	if len(meant) > 0 {
		return err.WithHint("did you mean '%s %s'?", cmd.CommandPath(), strings.Join(meant, "' or '"+cmd.CommandPath()+" "))
	}
	return err.WithHint("see '%s --help'", cmd.CommandPath())
}

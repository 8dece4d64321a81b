package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
)

// Validate reports a key that is no flag of any command under root, or that can only be typed, and a value that one of the
// commands with that flag would refuse. It sets the flags: root is of no use afterwards.
func Validate(root *cobra.Command, key string, values []string) error {
	known := Keys(root)
	switch {
	case slices.Contains(typedOnly, key):
		return failure.Usagef("%q cannot be set: --%s is about one run, or differs between commands", key, key)
	case key == profileKey:
		return failure.Usagef("%q is no flag's default", key).WithHint("choose a profile with 'gangctl config use-profile NAME'")
	case !slices.Contains(known, key) && onlyTypedFlag(root, key):
		return failure.Usagef("%q cannot be set: --%s only counts when it is typed", key, key)
	case !slices.Contains(known, key):
		err := failure.Usagef("unknown key %q", key)
		if nearest := suggest.Nearest(key, known); nearest != "" {
			return err.WithHint("did you mean %q?", nearest)
		}
		return err.WithHint("a key is a flag of any command without its dashes, such as image for --image")
	}
	if slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" }) && !MayBeEmpty(key) {
		return failure.Usagef("%s is empty", key).WithHint("give it a value, or take the setting away: gangctl config unset %s", key)
	}
	var failed error
	visit(root, key, func(cmd *cobra.Command, flag *pflag.Flag) {
		if failed != nil {
			return
		}
		if err := try(flag, values); err != nil {
			failed = failure.Usagef("%s: %q: %w (--%s of %s)", key, strings.Join(values, " "), err, key, cmd.CommandPath())
			return
		}
		if checked, ok := flag.Value.(flagvalue.Checked); ok {
			failed = checked.Check() // which names the flag
		}
	})
	return failed
}

func try(flag *pflag.Flag, values []string) error {
	if len(values) == 1 {
		return set(flag, values[0])
	}
	if _, repeatable := flag.Value.(pflag.SliceValue); !repeatable {
		return fmt.Errorf("must be a single value")
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return set(flag, list)
}

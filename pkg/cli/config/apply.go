package config

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cast"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
)

// Apply sets the flags of cmd that were not typed. They do not count as changed: a default is not a demand. A value that a
// flag refuses is an error with its place.
func (c *Config) Apply(cmd *cobra.Command) error {
	var failed error
	own := onlyTyped(cmd)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if failed != nil || flag.Changed || slices.Contains(notSettings, flag.Name) || own && cmd.LocalFlags().Lookup(flag.Name) == flag {
			return
		}
		value, source := c.lookup(flag.Name)
		if source == "" {
			return
		}
		if err := set(flag, value); err != nil {
			failed = failure.Usagef("%s: %q: %w", source, fmt.Sprint(value), err)
			return
		}
		c.applied[flag.Name] = source
	})
	return failed
}

// about is the flag that an error of a command is about.
var about = regexp.MustCompile(`^--([a-z][-a-z0-9]*)\b`)

// Attribute adds, to the error of a command about the value of a flag that was not typed, where that value comes from.
func (c *Config) Attribute(err error) error {
	failed := failure.From(err)
	if failed == nil {
		return nil
	}
	flag := about.FindStringSubmatch(failed.Message)
	if flag == nil && strings.HasPrefix(failed.Message, "kubeconfig ") {
		return c.attributeConnection(failed)
	}
	if flag == nil || c.applied[flag[1]] == "" {
		return err
	}
	failed.Message = c.applied[flag[1]] + ": " + failed.Message
	return failed
}

// attributeConnection adds, to an error about the kubeconfig, which settings choose it, or what is in it.
func (c *Config) attributeConnection(failed *failure.Error) error {
	for _, flag := range []string{"kubeconfig", "context", "cluster", "user"} {
		if source := c.applied[flag]; source != "" {
			failed.Hint = strings.TrimPrefix(failed.Hint+"\n", "\n") + fmt.Sprintf("--%s was not typed: it is set by %s", flag, source)
		}
	}
	return failed
}

func set(flag *pflag.Flag, value any) error {
	list, repeatable := flag.Value.(pflag.SliceValue)
	if repeatable {
		items, err := cast.ToStringSliceE(value)
		if text, ok := value.(string); ok {
			items, err = []string{text}, nil // cast would split at blanks, which a value may hold
		}
		if err != nil {
			return fmt.Errorf("must be a text or a list of texts")
		}
		return list.Replace(items)
	}
	text, err := cast.ToStringE(value)
	if err != nil {
		return fmt.Errorf("must be a single value")
	}
	return flagvalue.Explain(flag, flag.Value.Set(text))
}

// CheckEnvironment warns about variables that look like settings, and are none. Other programs may have some of such names: they are of interest to
// those who look at the settings, and no more.
func CheckEnvironment(root *cobra.Command, environ []string, warnings io.Writer) {
	prefix, known := variable(""), Keys(root)
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(entry, "=")
		suffix, ours := strings.CutPrefix(name, prefix)
		key := strings.ReplaceAll(strings.ToLower(suffix), "_", "-")
		if !ours || value == "" || key == profileKey || slices.Contains(known, key) || slices.Contains(typedOnly, key) {
			continue
		}
		hint := ""
		if nearest := suggest.Nearest(key, known); nearest != "" {
			hint = ": did you mean " + variable(nearest) + "?"
		}
		fmt.Fprintf(warnings, "warning: %s is no setting%s\n", name, hint)
	}
}

// Check warns about what has no effect: keys in the file that are no flag of any command under root, each with the nearest
// that is, and flags that can only be typed, in the file and in the environment.
func (c *Config) Check(root *cobra.Command, warnings io.Writer) {
	known := Keys(root)
	for _, flag := range typedOnly {
		if name := variable(flag); c.getenv(name) != "" {
			fmt.Fprintf(warnings, "warning: %s has no effect: --%s cannot be set, only typed\n", name, flag)
		}
	}
	keys := c.file.AllKeys()
	slices.Sort(keys)
	for _, key := range keys {
		name, shown := key, key
		if parts := strings.SplitN(key, separator, 3); parts[0] == profilesKey {
			if len(parts) < 3 {
				continue // an empty profile
			}
			name, shown = parts[2], strings.Join(parts, ".")
		} else if key == profileKey {
			continue
		}
		if slices.Contains(known, name) {
			continue
		}
		if slices.Contains(typedOnly, name) || onlyTypedFlag(root, name) {
			fmt.Fprintf(warnings, "warning: settings %s: key %q has no effect: --%s cannot be set, only typed\n", c.path, shown, name)
			continue
		}
		hint := ""
		if nearest := suggest.Nearest(name, known); nearest != "" {
			hint = fmt.Sprintf(": did you mean %q?", nearest)
		}
		fmt.Fprintf(warnings, "warning: settings %s: unknown key %q%s\n", c.path, shown, hint)
	}
}

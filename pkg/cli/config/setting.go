package config

import (
	"slices"

	"github.com/spf13/cast"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// redacted stands for a value that is a secret.
const redacted = "REDACTED"

// secrets are the flags whose values are not shown.
var secrets = []string{"token"}

// Setting is a default that counts in this run.
type Setting struct {
	// Key is the name of a flag without its dashes.
	Key string `json:"key"`
	// Values are one text, or those of a flag that can be repeated. A secret reads REDACTED.
	Values []string `json:"values"`
	// Origin is where it was found: --FLAG, GANGCTL_VARIABLE, or the file and the place in it.
	Origin string `json:"origin,omitempty"`
}

// Settings are the settings that count in a run of cmd, a command under root: for every flag of any command what was typed
// for cmd, if it is a flag of every command, else what the environment, the profile or the file sets. They are sorted by key.
func (c *Config) Settings(root, cmd *cobra.Command) []Setting {
	all := []Setting{}
	for _, key := range Keys(root) {
		s := Setting{Key: key}
		if flag := cmd.InheritedFlags().Lookup(key); flag != nil && flag.Changed {
			s.Values, s.Origin = typed(flag), "--"+key
		} else if value, source := c.lookup(key); source != "" {
			s.Values, s.Origin = texts(value), source
		} else {
			continue
		}
		if slices.Contains(secrets, key) {
			s.Values = []string{redacted}
		}
		all = append(all, s)
	}
	return all
}

func typed(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}

// texts are the values of a key of the file or of a variable. What is neither a text nor a list of texts shows as YAML would
// hold it; Apply refuses it.
func texts(value any) []string {
	if text, err := cast.ToStringE(value); err == nil {
		return []string{text}
	}
	if list, ok := value.([]any); ok {
		items := make([]string, len(list))
		for i, item := range list {
			items[i] = cast.ToString(item)
		}
		return items
	}
	return []string{inline(value)}
}

// Overridden is the source that wins over a key that stands in a profile of the file, or at its top level if profile is empty: a
// variable, or the profile that counts. It is empty if nothing does.
func (c *Config) Overridden(profile, key string) string {
	if name := variable(key); c.getenv(name) != "" {
		return name
	}
	if _, source := c.lookup(key); profile == "" && c.profile != "" && source == c.place(c.profile, key) {
		return source
	}
	return ""
}

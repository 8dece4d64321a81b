package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/printer"
)

// apiVersion is that of the answer of view in JSON and YAML.
const apiVersion = "gangctl.config/v1"

// answer is the output of `config view`.
type answer struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	File       string           `json:"file"`
	Profile    string           `json:"profile,omitempty"`
	Profiles   []string         `json:"profiles"`
	Settings   []config.Setting `json:"settings"`
}

func newView(options func() *Options) *cobra.Command {
	var origin bool
	var format printer.Flags
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show the settings that count",
		Long: `Show the settings that count here: of each flag with a default of yours, the value that wins. What is typed with this
command counts, too. A token is not shown. Keys that are no flag are reported on standard error.`,
		Example: `  # what counts, and where it comes from
  gangctl config view --show-origin

  # what counts in a profile
  gangctl config view --profile big -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.Validate(); err != nil {
				return err
			}
			return options().view(cmd, format, origin)
		},
	}
	cmd.Flags().BoolVar(&origin, "show-origin", false, "Show where each value comes from")
	format.AddFlags(cmd, printer.JSON, printer.YAML)
	return cmd
}

func (o *Options) view(cmd *cobra.Command, format printer.Flags, origin bool) error {
	profile := ""
	if flag := cmd.Flag("profile"); flag != nil {
		profile = flag.Value.String()
	}
	c, err := config.Load(o.Path, o.Getenv, profile)
	if err != nil {
		return err
	}
	c.Check(cmd.Root(), o.IO.ErrOut)
	if o.Environ != nil {
		config.CheckEnvironment(cmd.Root(), o.Environ(), o.IO.ErrOut)
	}
	a := answer{APIVersion: apiVersion, Kind: "Settings", File: o.Path, Profile: c.Profile(), Profiles: c.Profiles(), Settings: c.Settings(cmd.Root(), cmd)}
	if !origin {
		for i := range a.Settings {
			a.Settings[i].Origin = ""
		}
	}
	switch format.Output {
	case printer.JSON:
		encoder := json.NewEncoder(o.IO.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		err = encoder.Encode(a)
	case printer.YAML:
		var text []byte
		if text, err = k8syaml.Marshal(a); err == nil {
			_, err = o.IO.Out.Write(text)
		}
	default:
		if len(a.Settings) == 0 {
			fmt.Fprintf(o.IO.ErrOut, "nothing is set, neither in %s nor in the environment\n", config.Name(o.Path))
			return nil
		}
		err = o.list(a, origin)
	}
	if err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	return nil
}

// list prints `key: value` as the file would hold it, or a table with the origins.
func (o *Options) list(a answer, origin bool) error {
	if origin {
		rows := [][]string{}
		for _, s := range a.Settings {
			rows = append(rows, []string{s.Key, strings.Join(s.Values, ", "), s.Origin})
		}
		return printer.PrintTable(o.IO.Out, printer.Flags{}, o.IO.Width(), []printer.Column{{Name: "Key"}, {Name: "Value"}, {Name: "Origin"}}, rows)
	}
	for _, s := range a.Settings {
		var value any = s.Values
		if len(s.Values) == 1 {
			value = s.Values[0]
		}
		line, err := yaml.Marshal(map[string]any{s.Key: value})
		if err != nil {
			return err
		}
		if _, err := o.IO.Out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func newPath(options func() *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print where the settings file is",
		Long:  "Print the path of the settings file, whether it exists or not: $XDG_CONFIG_HOME/gangctl/config.yaml, or ~/.config/gangctl/config.yaml.",
		Example: `  # edit it by hand
  "${EDITOR:-vi}" "$(gangctl config path)"

  # is there one?
  gangctl config path | xargs ls -l`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			o := options()
			path, err := config.Locate(o.Path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(o.IO.Out, path)
			return err
		},
	}
}

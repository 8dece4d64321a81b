// Package version is `gangctl version`.
package version

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// format is the value of -o.
type format string

const (
	text      format = ""
	asJSON    format = "json"
	asYAML    format = "yaml"
	shortText format = "short"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO   *iostreams.IOStreams
	Info version.Info

	Output format
}

// NewCommand returns the command; runF replaces the run in tests. It needs no cluster.
func NewCommand(f *cmdutil.Factory, runF func(*Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Info: f.Version}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of gangctl",
		Long:  "Show which gangctl this is, and for which Kubernetes API it was built. No cluster is contacted.",
		Example: `  # for a bug report
  gangctl version

  # for a script
  gangctl version -o short`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("version takes no arguments, got %q", args[0])
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if runF != nil {
				return runF(o)
			}
			return o.run()
		},
	}
	flagvalue.EnumP(cmd, cmd.Flags(), &o.Output, "output", "o", text, "Output format", asJSON, asYAML, shortText)
	return cmd
}

func (o *Options) run() error {
	var out []byte
	var err error
	switch o.Output {
	case shortText:
		out = []byte(o.Info.Version + "\n")
	case asJSON:
		out, err = json.MarshalIndent(o.Info, "", "    ")
		out = append(out, '\n')
	case asYAML:
		out, err = yaml.Marshal(o.Info)
	default:
		return o.print()
	}
	if err != nil {
		return fmt.Errorf("print version: %w", err)
	}
	_, err = o.IO.Out.Write(out)
	return err
}

// print writes the version as text.
func (o *Options) print() error {
	if _, err := fmt.Fprintf(o.IO.Out, "gangctl %s\n", o.Info.Version); err != nil {
		return err
	}
	return printer.PrintFields(o.IO.Out, "  ", o.IO.Width(), printer.Field{Label: "commit", Value: o.Info.Commit}, printer.Field{Label: "date", Value: o.Info.Date},
		printer.Field{Label: "go", Value: o.Info.GoVersion}, printer.Field{Label: "platform", Value: o.Info.Platform}, printer.Field{Label: "kubernetes client", Value: o.Info.Kubernetes})
}

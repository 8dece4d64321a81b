package submit

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// newTemplatesCommand returns `gangctl submit templates`.
func newTemplatesCommand(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "templates",
		Short: "Show the jobs that --template can start from",
		Long: `Show the jobs that --template can start from: those that are built in, and your own, which are YAML files in the directory
templates beside the settings (gangctl config path). One of yours hides a built-in one of the same name.`,
		Example: `  gangctl submit templates list

  # start from one
  gangctl submit tf llama --template parameter-server --image tensorflow/tensorflow:2.17.0 --ps 1 --workers 2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("submit templates has no subcommand %q", args[0]).WithHint("gangctl submit templates list, or gangctl submit templates show NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the templates",
		Long: `List the templates, with the kind of job that each makes, the file that it comes from, and what it is for.`,
		Example: `  gangctl submit templates list

  # those for TensorFlow
  gangctl submit templates list | grep TFJob`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("submit templates list takes no arguments, got %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return listTemplates(f) },
	}, &cobra.Command{
		Use: "show NAME", Short: "Show a template",
		Long: `Show the YAML of a template, comments and all. Flags of submit are laid over it.`,
		Example: `  gangctl submit templates show parameter-server

  # make one of your own
  gangctl submit templates show all-reduce > ~/.config/gangctl/templates/mine.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("submit templates show needs the name of one template, got %d", len(args)).WithHint("see them with `gangctl submit templates list`")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return templateNames(f), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := findTemplate(f.ConfigPath, args[0])
			if err != nil {
				return err
			}
			_, err = f.IO.Out.Write(t.text)
			return err
		},
	})
	return cmd
}

// templateNames are those that can be completed.
func templateNames(f *cmdutil.Factory) []string {
	all, err := templatesIn(f.ConfigPath)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(all))
}

func listTemplates(f *cmdutil.Factory) error {
	all, err := templatesIn(f.ConfigPath)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		from := t.path
		if from == "" {
			from = "built in"
		}
		rows = append(rows, []string{name, t.kind(), from, t.purpose()})
	}
	columns := []printer.Column{{Name: "Name"}, {Name: "Kind"}, {Name: "From"}, {Name: "Purpose"}}
	return printer.PrintTable(f.IO.Out, printer.Flags{}, f.IO.Width(), columns, rows)
}

// kind is that of the template's job; a question mark if it cannot be read, which `submit` tells of.
func (t template) kind() string {
	var job struct{ Kind string }
	if err := yaml.Unmarshal(t.text, &job); err != nil || job.Kind == "" {
		return "?"
	}
	return job.Kind
}

// purpose is the comment with which the template begins.
func (t template) purpose() string {
	line, _, _ := strings.Cut(string(t.text), "\n")
	comment, isComment := strings.CutPrefix(line, "#")
	if !isComment {
		return ""
	}
	return strings.TrimSpace(comment)
}

// Package install is `gangctl install`: what gangctl puts on a cluster, and how it is set.
package install

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// NewCommand returns the command with one subcommand for each thing that can be installed.
func NewCommand(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the gang scheduler or the training operator on a cluster",
		Long: `Install what gangctl needs on a cluster. Running it again changes nothing. The scheduler is taken away by
'gangctl uninstall'.`,
		Example: `  # the gang scheduler
  gangctl install scheduler

  # what would be installed, without a cluster
  gangctl install scheduler --export`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			hint := "see 'gangctl install --help'"
			if nearest := suggest.Nearest(args[0], names); nearest != "" {
				hint = fmt.Sprintf("did you mean gangctl install %s?", nearest)
			}
			return failure.Usagef("install %q: there is nothing of that name to install", args[0]).WithHint("%s", hint)
		},
		Annotations: map[string]string{config.OnlyTyped: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewSchedulerCommand(f, nil), NewOperatorCommand(f, nil), NewImagesCommand(f))
	return cmd
}

// scheduler is the name of what can be upgraded and taken away, as `install scheduler` has it.
const scheduler = "scheduler"

// OnlyScheduler takes the arguments of a command that is about the scheduler, which may name it.
func OnlyScheduler(verb string, args []string) error {
	if len(args) == 0 || len(args) == 1 && args[0] == scheduler {
		return nil
	}
	return failure.Usagef("%s %q: only the scheduler can be named", verb, strings.Join(args, " ")).WithHint("see 'gangctl %s --help'", verb)
}

// CompleteScheduler completes the arguments that [OnlyScheduler] takes.
func CompleteScheduler(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{scheduler}, cobra.ShellCompDirectiveNoFileComp
}

// noArguments is the validation of commands that take everything by flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0]).WithHint("see '%s --help'", cmd.CommandPath())
	}
	return nil
}

// export prints the objects as they would be applied, in that order.
func export(io *iostreams.IOStreams, scheduler install.Scheduler) error {
	objects, err := scheduler.Objects()
	if err != nil {
		return err
	}
	return printYAML(io, objects)
}

func printYAML(io *iostreams.IOStreams, objects []*unstructured.Unstructured) error {
	for i, object := range apply.Ordered(objects) {
		data, err := printer.MarshalYAML(object.Object)
		if err != nil {
			return fmt.Errorf("write %s: %w", apply.Describe(object), err)
		}
		if i > 0 {
			fmt.Fprintln(io.Out, "---")
		}
		fmt.Fprintf(io.Out, "%s", data)
	}
	return nil
}

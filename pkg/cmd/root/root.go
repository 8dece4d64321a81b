// Package root assembles the command tree of gangctl.
package root

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/paste"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/attach"
	checkcmd "github.com/gangctl/gangctl/pkg/cmd/check"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	configcmd "github.com/gangctl/gangctl/pkg/cmd/config"
	deletecmd "github.com/gangctl/gangctl/pkg/cmd/delete"
	"github.com/gangctl/gangctl/pkg/cmd/describe"
	"github.com/gangctl/gangctl/pkg/cmd/docs"
	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/cmd/fit"
	"github.com/gangctl/gangctl/pkg/cmd/get"
	"github.com/gangctl/gangctl/pkg/cmd/help"
	"github.com/gangctl/gangctl/pkg/cmd/install"
	"github.com/gangctl/gangctl/pkg/cmd/list"
	"github.com/gangctl/gangctl/pkg/cmd/logs"
	"github.com/gangctl/gangctl/pkg/cmd/portforward"
	reportcmd "github.com/gangctl/gangctl/pkg/cmd/report"
	"github.com/gangctl/gangctl/pkg/cmd/resize"
	"github.com/gangctl/gangctl/pkg/cmd/resubmit"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/cmd/suspend"
	"github.com/gangctl/gangctl/pkg/cmd/top"
	"github.com/gangctl/gangctl/pkg/cmd/uninstall"
	"github.com/gangctl/gangctl/pkg/cmd/upgrade"
	versioncmd "github.com/gangctl/gangctl/pkg/cmd/version"
	"github.com/gangctl/gangctl/pkg/cmd/wait"
	"github.com/gangctl/gangctl/pkg/cmd/whypending"
)

// The groups of the help.
const (
	groupJobs     = "jobs"
	groupCluster  = "cluster"
	groupSettings = "settings"
)

// NewCommand returns `gangctl` with every command under it. The factory must hold IO, Args, Getenv and Version; what else it
// lacks is made from the connection flags and the environment. Further commands are those that this package must not know.
func NewCommand(f *cmdutil.Factory, further ...*cobra.Command) *cobra.Command {
	var profile string
	var color iostreams.ColorMode
	cmd := rootCommand(f)
	flags := cmd.PersistentFlags()
	cluster, printed := connect(f, cmd)
	flags.StringVar(&profile, "profile", "", "Profile of the settings file (default: $GANGCTL_PROFILE, then the file's own choice)")
	flagvalue.Enum(cmd, flags, &color, "color", iostreams.ColorAuto, "Colour of messages",
		iostreams.ColorAuto, iostreams.ColorAlways, iostreams.ColorNever)

	addCommands(cmd, f, further)
	addCompletion(cmd)
	addHelp(cmd, f.IO.Width)
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, c := range further { // their flags are their own affair
		c.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	}
	var loaded *config.Config
	settings := func(run *cobra.Command) error {
		c, err := config.Load(f.ConfigPath, f.Getenv, profile)
		if err != nil {
			return err
		}
		loaded = c
		if err := c.Apply(run); err != nil {
			return err
		}
		f.IO.SetColor(color)
		c.Check(cmd, f.IO.ErrOut)
		return nil
	}
	cmd.PersistentPreRunE = func(run *cobra.Command, args []string) error {
		if !isPartOf(run, further) {
			run.SetContext(silenced(run.Context()))
		}
		f.IO.SetColor(color)
		printed.Run(run)
		if toleratesSettings(run) {
			return nil
		}
		if err := refuseEmpty(run, args); err != nil {
			return err
		}
		return settings(run)
	}
	completeValues(cmd, values(f, cluster), settings)
	finish(cmd, settings, func(err error) error {
		if loaded == nil {
			return err
		}
		return loaded.Attribute(err)
	})
	return cmd
}

// isPartOf reports whether a command is one of some, or below one.
func isPartOf(run *cobra.Command, some []*cobra.Command) bool {
	for c := run; c != nil; c = c.Parent() {
		if slices.Contains(some, c) {
			return true
		}
	}
	return false
}

// silenced is a context in which the libraries of Kubernetes log nothing: what they log is not written for users, and comes back as an error that is.
func silenced(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// rootCommand returns the root without flags and commands.
func rootCommand(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gangctl",
		Short: "Submit gang jobs on Kubernetes, and see why they wait",
		Long: `gangctl submits jobs whose members start together or not at all, and shows how they are.

Flags can have a default: GANGCTL_IMAGE for --image, or ` + "`image: IMAGE`" + ` in the settings file
($XDG_CONFIG_HOME/gangctl/config.yaml), there also under profiles.NAME, chosen with --profile NAME. Those that are about one
run, or differ between commands, can only be typed: --abort, --all-namespaces, --apply, --diff, --dry-run, --failed, --file,
--filename, --first-error, --for, --from, --index, --name, --node, --output, --overwrite, --pre, --previous, --recreate,
--replica, --save, --smoke, --timeout, --wait, --watch, --what-fits and --yes.`,
		Example: `  # submit, look, remove
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py
  gangctl list
  gangctl delete llama`,
		SilenceUsage: true, SilenceErrors: true,
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	nameAs(cmd, f.Program)
	cmd.Version = f.Version.Version
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.Flags().Bool("version", false, "Show the version of gangctl")
	cmd.SetArgs(f.Args)
	cmd.SetIn(f.IO.In)
	cmd.SetOut(f.IO.Out)
	cmd.SetErr(f.IO.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		f.IO.SetColor(typedColor(f.Args))
		return failure.Usagef("%w", flagvalue.ExplainParsed(err)).WithHint("%s", flagHint(cmd, err))
	})
	return cmd
}

// typedColor is the value of --color in a command line that has a flag that is not known, at which the parser stopped.
func typedColor(args []string) (color iostreams.ColorMode) {
	flags := pflag.NewFlagSet("color", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	typed := flags.String("color", "", "")
	if err := flags.Parse(args); err != nil {
		return iostreams.ColorAuto
	}
	switch mode := iostreams.ColorMode(*typed); mode {
	case iostreams.ColorAlways, iostreams.ColorNever:
		return mode
	}
	return iostreams.ColorAuto
}

func addCommands(cmd *cobra.Command, f *cmdutil.Factory, further []*cobra.Command) {
	cmd.AddGroup(&cobra.Group{ID: groupJobs, Title: "Jobs:"}, &cobra.Group{ID: groupCluster, Title: "Cluster:"}, &cobra.Group{ID: groupSettings, Title: "Settings:"})
	add(cmd, groupJobs, submit.NewCommand(f), list.NewCommand(f, nil), get.NewCommand(f, nil), describe.NewCommand(f, nil), deletecmd.NewCommand(f, nil),
		suspend.NewCommand(f, nil), suspend.NewResumeCommand(f, nil), resize.NewCommand(f, nil), wait.NewCommand(f, nil), whypending.NewCommand(f, nil), reportcmd.NewCommand(f, nil),
		logs.NewCommand(f, nil), events.NewCommand(f, nil), top.NewCommand(f, nil), attach.NewCommand(f, nil), portforward.NewCommand(f, nil), fit.NewCommand(f, nil),
		resubmit.NewCommand(f, func(f *cmdutil.Factory) *cobra.Command { return NewCommand(f, further...) }, nil))
	add(cmd, groupCluster, install.NewCommand(f), upgrade.NewCommand(f, nil), uninstall.NewCommand(f, nil), checkcmd.NewCommand(f, nil))
	add(cmd, groupSettings, configcmd.NewCommand(f), versioncmd.NewCommand(f, nil))
	cmd.AddCommand(docs.NewCommand(nil))
	cmd.AddCommand(help.Topics()...)
	cmd.AddCommand(further...)
}

// connect adds the connection flags, and fills in what the factory lacks. The completer adds those flags to commands that are printed.
func connect(f *cmdutil.Factory, cmd *cobra.Command) (*kube.Factory, *paste.Completer) {
	cluster := kube.NewFactory(f.Version.UserAgent(), f.IO.ErrOut)
	connection := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	connection.SortFlags = false
	cluster.AddFlags(connection)
	cmd.PersistentFlags().AddFlagSet(connection)
	printed := paste.New(cmd, connection, groupJobs, groupSettings)
	if f.Namespace == nil {
		f.Namespace = cluster.Namespace
	}
	if f.Client == nil { // else another tree of commands has the flags that count
		f.Client = cluster.Client
		f.IO.SetCommands(printed.Complete)
	}
	if f.Suffix == nil {
		f.Suffix = func() string { return rand.String(5) }
	}
	if f.ConfigPath == "" {
		f.ConfigPath = config.Path(f.Getenv)
	}
	return cluster, printed
}

func add(parent *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		parent.AddCommand(c)
	}
}

// plugin is the program that kubectl looks for when a user types `kubectl gang`.
const plugin = "kubectl-gang"

// nameAs makes the help call the program what the user called it: `kubectl gang` if it runs as kubectl's plugin.
func nameAs(cmd *cobra.Command, program string) {
	if strings.TrimSuffix(filepath.Base(program), ".exe") == plugin {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gang"}
	}
}

// Execute runs a command tree and returns the exit code. What stopped it is on standard error. A command whose output is lost
// has not succeeded.
func Execute(ctx context.Context, f *cmdutil.Factory, cmd *cobra.Command) failure.Code {
	failed := failure.From(cmd.ExecuteContext(ctx))
	if failed == nil {
		failed = failure.From(f.IO.OutErr())
	}
	if failed == nil {
		return failure.CodeOK
	}
	failure.Print(f.IO, failed)
	return failed.Code
}

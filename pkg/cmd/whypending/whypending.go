// Package whypending is `gangctl why-pending`.
package whypending

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	// Kind and Name are the job of the query; an empty name lists every pending gang.
	Kind, Name string
	// Replica is one of the gangs of a job of several, by its number or role; empty for the first that does not run.
	Replica       string
	AllNamespaces bool
	Quiet         bool
	Verbose       bool
	Node          string
	cmdutil.WatchFlags
	Save, From string
	// Overwrite writes over the file of Save if it is there.
	Overwrite bool
	NoProbe   bool
	// Apply is the action to do. Yes does it without a prompt.
	Apply    way
	Yes      bool
	Prompter prompt.Prompter
	// Resize runs `gangctl resize` with some arguments.
	Resize func(ctx context.Context, args []string) error
	// Source is where the answer comes from: auto, cluster or scheduler.
	Source string
	Output printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{
		IO: f.IO, Namespace: f.Namespace, Client: f.Client, Prompter: prompt.New(f.IO),
		Resize: func(ctx context.Context, args []string) error { return runResize(ctx, f, args) },
	}
	cmd := &cobra.Command{
		Use:   "why-pending [job] [NAME | KIND/NAME]",
		Short: "Explain why a gang does not run, and what would make it",
		Long: `Explain why a gang does not run: from its admission to its first step, every reason at once, who can remove it, and what would
make the gang start now. Everything that is offered was tried on a copy of the cluster's state first; nothing is changed, unless --apply
names one of the ways.

NAME is a job of any kind. KIND/NAME is a tfjob/, pytorchjob/, mpijob/, xgboostjob/, paddlejob/, jaxjob/, trainjob/, jobset/, lws/, rayjob/,
vcjob/, job/ or pod/. Without a name, every gang of the namespace that waits is listed with its reason.

Each replica of a LeaderWorkerSet is a gang of its own, and so is each replicated job of a JobSet that starts in order. The answer is about
the first that does not run, with how many others have the same one; --replica, or a pod/ of it, chooses another.

The exit code is part of the answer: 0 it runs, 3 it starts by itself, 4 you can fix it, 5 another user has to, 6 never,
7 it holds resources without running, 8 unknown, 9 it has failed. See also gangctl help exit-codes.

What you may not see is named, with what the answer loses by it and the rule that an administrator can apply.`,
		Example: `  # why does it wait?
  gangctl why-pending llama

  # why not on this node?
  gangctl why-pending llama --node gpu3

  # why does the second replica of a LeaderWorkerSet wait?
  gangctl why-pending lws/llama --replica 1

  # why do the workers of a JobSet wait that starts in order?
  gangctl why-pending jobset/llama --replica workers

  # do the second of the ways that it offers
  gangctl why-pending llama --apply 2

  # keep what was seen for a bug report, and answer from it elsewhere
  gangctl why-pending llama --save llama.yaml.gz
  gangctl why-pending llama --from llama.yaml.gz -o json`,
		SuggestFor:        []string{"why", "explain", "reason", "pending"},
		ValidArgsFunction: cmdutil.CompleteJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			if err := o.validate(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Without a name: the gangs of all namespaces")
	flags.BoolVarP(&o.Quiet, "quiet", "q", false, "Print the first line only")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "Print every node with every reason")
	flags.StringVar(&o.Replica, "replica", "", "Explain this replica of a LeaderWorkerSet, or this role of a JobSet that starts in order, instead of the first that does not run")
	flags.StringVar(&o.Node, "node", "", "Explain also why not this node")
	o.WatchFlags.AddFlags(flags, "Answer again whenever the answer changes, until the gang runs", "With --watch: how often to look")
	flags.StringVar(&o.Save, "save", "", "Save what was seen to this file, without secrets; .gz is compressed")
	flags.BoolVar(&o.Overwrite, "overwrite", false, "With --save: write over the file if it is there")
	flags.StringVar(&o.From, "from", "", "Answer from a saved file instead of the cluster; - is standard input")
	flags.Var(&o.Apply, "apply", "Do the way of this number, or text, of those that the answer offers, after showing it")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "With --apply: do it without confirmation")
	flagvalue.Enum(cmd, flags, &o.Source, "source", sourceAuto, "Where the answer comes from; scheduler is what the gang scheduler published, and auto that on 500 nodes or more, or where you may not list nodes or pods", sourceAuto, sourceCluster, sourceScheduler)
	flags.BoolVar(&o.NoProbe, "no-probe", false, "Do not try whether the API server would accept missing pods (create with dry-run)")
	o.Output.AddFlags(cmd, printer.WithTemplates(printer.JSON, printer.YAML)...)
}

// parse reads `NAME`, `KIND/NAME`, `job NAME` and `job KIND/NAME`.
func (o *Options) parse(args []string) error {
	switch {
	case len(args) > 2:
		return failure.Usagef("why-pending takes one job, got %d arguments", len(args)).WithHint("for one job: gangctl why-pending %s", shell.Quote(args[len(args)-1]))
	case len(args) == 2:
		o.Kind, o.Name = args[0], args[1]
	case len(args) == 1 && args[0] == "job":
		return nil
	case len(args) == 1:
		o.Name = args[0]
	}
	if kind, name, ok := strings.Cut(o.Name, "/"); ok {
		o.Kind, o.Name = kind, name
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return failure.Usagef("%q: want KIND/NAME", args[len(args)-1])
		}
	}
	if o.Kind != "" && !diagnose.KnownKind(o.Kind) {
		err := failure.Usagef("unknown kind %q: must be one of %s", o.Kind, strings.Join(diagnose.KindNames(), ", "))
		if kind := strings.ToLower(o.Kind); kind == "cronjob" || kind == "cronjobs" || kind == "cj" {
			return err.WithHint("a CronJob makes Jobs, each a gang of its own: its name without the kind has them named")
		}
		return err
	}
	return nil
}

func (o *Options) validate(cmd *cobra.Command) error {
	typed := cmd.Flags().Changed // a default from the settings that does not apply is no mistake
	switch {
	case o.AllNamespaces && typed("namespace"):
		return failure.Usagef("--all-namespaces and --namespace cannot be used together").WithHint("leave out one of them")
	case o.AllNamespaces && o.Name != "":
		return failure.Usagef("--all-namespaces is for the list of all gangs; %q is one", o.Name).WithHint("name its namespace with -n")
	case typed("replica") && (o.Name == "" || o.Replica == ""):
		return failure.Usagef("--replica is the number of a replica, from 0 on, or a role, of one job").WithHint("gangctl why-pending lws/NAME --replica 0")
	case o.Name == "" && (o.Node != "" || o.Verbose):
		return failure.Usagef("--node and --verbose need the name of a job").WithHint("gangctl why-pending NAME --node NODE")
	case o.Quiet && o.Verbose:
		return failure.Usagef("--quiet and --verbose cannot be used together").WithHint("leave out one of them")
	case typed("quiet") && (o.Name == "" || !o.Output.IsTable()):
		return failure.Usagef("--quiet is for the text about one job").WithHint("name a job, without -o: gangctl why-pending NAME -q")
	case typed("verbose") && !o.Output.IsTable():
		return failure.Usagef("--verbose has no effect with -o %s, which holds everything", o.Output.Output).WithHint("leave out one of them")
	case typed("no-probe") && (o.From != "" || o.Name == ""):
		return failure.Usagef("--no-probe has no effect: nothing is probed without a cluster and a job").WithHint("leave it out, or name a job without --from")
	case o.Watch && o.Save != "":
		return failure.Usagef("--save keeps one moment, --watch looks at many").WithHint("leave out one of them")
	case o.Watch && o.From != "":
		return failure.Usagef("--watch needs a cluster: a saved file does not change").WithHint("leave out --watch or --from")
	case o.Watch && o.Name == "":
		return failure.Usagef("--watch needs the name of a job")
	case o.Save == localfile.Stdin:
		return failure.Usagef("--save -: standard output is for the answer").WithHint("name a file, such as --save cluster.yaml.gz")
	case o.Overwrite && o.Save == "":
		return failure.Usagef("--overwrite has no effect without --save").WithHint("leave it out, or name a file: --save cluster.yaml.gz")
	case typed("source") && o.From != "":
		return failure.Usagef("--source has no effect with --from: the answer is from the file").WithHint("leave out one of them")
	case o.Apply.given() && o.From != "":
		return failure.Usagef("--apply needs a cluster: a saved file cannot be changed").WithHint("leave out --from, or see the commands with `-v`")
	case o.Apply.given() && (o.Name == "" || o.Watch || o.Quiet || o.Save != "" || !o.Output.IsTable() || typed("source") && o.Source == sourceScheduler):
		return failure.Usagef("--apply needs the name of a job and goes with neither --watch, --quiet, --save, --output nor --source=scheduler").WithHint("gangctl why-pending NAME --apply N")
	case typed("yes") && !o.Apply.given():
		return failure.Usagef("--yes has no effect without --apply").WithHint("add --apply N, or leave out --yes")
	case typed("source") && o.Source == sourceScheduler && (o.Name == "" || o.Save != "" || o.Verbose || o.Node != "" || o.Watch):
		return failure.Usagef("--source=scheduler needs the name of a job and goes with neither --save, --verbose, --node nor --watch").
			WithHint("the scheduler publishes one answer a job, without the single nodes")
	}
	if err := o.WatchFlags.Validate(cmd.Flags()); err != nil {
		return err
	}
	return o.Output.Validate()
}

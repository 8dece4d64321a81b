// Package list is `gangctl list`.
package list

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	AllNamespaces bool
	Selector      string
	Output        printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, and why those that wait do so",
		Long: `List the jobs of a namespace, whoever created them: TFJobs, PyTorchJobs, MPIJobs, XGBoostJobs, PaddleJobs, JAXJobs, TrainJobs, JobSets,
LeaderWorkerSets, RayJobs, RayClusters, Jobs of Volcano, and Jobs of Kubernetes whose pods are a gang.

STATE is how the gang is: Pending, Starting, Running, Degraded (some members run while others cannot), Succeeded, Failed or
Suspended. READY counts the members that run. Each replica of a LeaderWorkerSet is a gang: it
is Starting while some replicas run and others wait. REASON is the scheduler's message on a job that waits.`,
		Example: `  # the jobs of the context's namespace
  gangctl list

  # those of one team, everywhere, with scheduler and gang size
  gangctl list -A -l team=vision -o wide`,
		SuggestFor: []string{"squeue", "sinfo", "qstat", "ps", "status", "jobs"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("list takes no arguments, got %q", args[0]).WithHint("for one job: gangctl get %s", shell.Quote(args[0]))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "List the jobs of all namespaces")
	cmd.Flags().StringVarP(&o.Selector, "selector", "l", "", "Label selector, such as team=vision,env!=test")
	flagvalue.Check(cmd.Flags(), o.checkSelector, "selector")
	o.Output.AddTableFlags(cmd)
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	if o.AllNamespaces && cmd.Flags().Changed("namespace") {
		return failure.Usagef("--all-namespaces and --namespace cannot be used together").WithHint("leave out one of them")
	}
	if err := o.checkSelector(); err != nil {
		return err
	}
	return o.Output.Validate()
}

func (o *Options) checkSelector() error {
	if _, err := labels.Parse(o.Selector); err != nil {
		return failure.Usagef("--selector %q: %w", o.Selector, err).WithHint("for example: -l team=vision,env!=test")
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	namespace := "" // all
	if !o.AllNamespaces {
		var err error
		if namespace, err = o.Namespace(); err != nil {
			return err
		}
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	count, done := cmdutil.Collecting(o.IO)
	defer done()
	all, err := jobs.List(ctx, client, jobs.Selection{Namespace: namespace, Selector: o.Selector, Objects: !o.Output.IsTable(), Count: count})
	if err != nil {
		return err
	}
	var pods map[types.UID][]*corev1.Pod
	var unread error
	if o.Output.IsTable() {
		unread = jobs.Minimums(ctx, client, namespace, all.Jobs)
		if pods, err = jobs.PodsOfAll(ctx, client, namespace, all.Jobs, count); err != nil {
			return err
		}
	}
	done()
	cmdutil.NoteUnreadMinimums(o.IO, unread)
	// What may be seen is shown; that it is not all is an error, and so is a list that is empty for want of a right.
	refused := failure.All(all.Refused...)
	if o.Output.IsTable() {
		refused = failure.Needing(refused, jobs.ListPods(namespace))
	}
	if len(all.Jobs) == 0 && refused != nil {
		return refused
	}
	if err := o.print(namespace, all.Jobs, pods); err != nil {
		return err
	}
	return refused
}

func (o *Options) print(namespace string, all []*gang.Job, pods map[types.UID][]*corev1.Pod) error {
	if !o.Output.IsTable() {
		return o.printObjects(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(o.IO.ErrOut, o.nothing(namespace))
		return nil
	}
	return o.printTable(all, pods)
}

func (o *Options) nothing(namespace string) string {
	where := "in namespace " + namespace
	if o.AllNamespaces {
		where = "in any namespace"
	}
	if o.Selector != "" {
		return fmt.Sprintf("no jobs with labels %s %s", o.Selector, where)
	}
	return "no jobs " + where
}

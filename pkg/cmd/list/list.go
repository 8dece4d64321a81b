// Package list is `gangctl list`.
package list

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

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

// order is a value of --sort-by.
type order string

const (
	byName  order = "name"
	byKind  order = "kind"
	byState order = "state"
	byGPUs  order = "gpus" // the most first
	byAge   order = "age"  // the oldest first
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	AllNamespaces bool
	Selector      string
	SortBy        order
	cmdutil.WatchFlags
	Output printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, and why those that wait do so",
		Long: `List the jobs of a namespace, whoever created them: TFJobs, PyTorchJobs, MPIJobs, XGBoostJobs, PaddleJobs, JAXJobs, TrainJobs, JobSets,
LeaderWorkerSets, RayJobs, RayClusters, Jobs of Volcano, and Jobs of Kubernetes whose pods are a gang or that gangctl has submitted.

STATE is how the gang is: Pending, Starting, Running, Degraded (some members run while others cannot, or are on a node that does not
report any more), Succeeded, Failed or Suspended. READY counts the members that run. Each replica of a LeaderWorkerSet is a gang: it
is Starting while some replicas run and others wait. REASON is the scheduler's message on a job that waits,
with what is in the way first.`,
		Example: `  # the jobs of the context's namespace
  gangctl list

  # those of one team, everywhere, with scheduler and gang size
  gangctl list -A -l team=vision -o wide

  # the largest first, as they change
  gangctl list --sort-by gpus -w`,
		SuggestFor: []string{"squeue", "qstat", "ps", "status", "jobs"},
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
	flagvalue.Enum(cmd, cmd.Flags(), &o.SortBy, "sort-by", byName, "Order of the jobs, by name where they are equal; gpus has the most first, age the oldest", byName, byKind, byState, byGPUs, byAge)
	o.WatchFlags.AddFlags(cmd.Flags(), "Watch, and redraw in place until q is pressed; into a pipe, print one table after the other", "With --watch: how often to look")
	o.Output.AddTableFlags(cmd)
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	if o.AllNamespaces && cmd.Flags().Changed("namespace") {
		return failure.Usagef("--all-namespaces and --namespace cannot be used together").WithHint("leave out one of them")
	}
	if o.Watch && !o.Output.IsTable() {
		return failure.Usagef("--watch shows tables, not -o %s", o.Output.Output).WithHint("leave out one of them")
	}
	if err := errors.Join(o.checkSelector(), o.WatchFlags.Validate(cmd.Flags())); err != nil {
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
	if o.Watch {
		return o.watch(ctx)
	}
	count, done := cmdutil.Collecting(o.IO)
	defer done()
	return o.list(ctx, count, done)
}

// list lists once. Count, if set, counts what is read, and done is called when all is.
func (o *Options) list(ctx context.Context, count *atomic.Int64, done func()) error {
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
	all, err := jobs.List(ctx, client, jobs.Selection{Namespace: namespace, Selector: o.Selector, Objects: !o.Output.IsTable(), Foresee: o.Output.IsTable(), Count: count})
	if err != nil {
		return err
	}
	var pods map[types.UID][]*corev1.Pod
	var unread error
	if o.Output.IsTable() || o.SortBy == byState {
		unread = jobs.Minimums(ctx, client, namespace, all.Jobs)
		if pods, err = jobs.PodsOfAll(ctx, client, namespace, all.Jobs, count); err != nil {
			return err
		}
	}
	done()
	cmdutil.NoteUnreadMinimums(o.IO, unread)
	// What may be seen is shown; that it is not all is an error, and so is a list that is empty for want of a right.
	refused := failure.All(all.Refused...)
	if len(all.Jobs) == 0 && refused != nil {
		if o.Output.IsTable() || o.SortBy == byState { // pods were not listed, without jobs
			refused = failure.Needing(refused, jobs.ListPods(namespace))
		}
		return refused
	}
	if err := o.print(namespace, all.Jobs, pods); err != nil {
		return err
	}
	if len(all.Jobs) == 0 {
		cmdutil.NoteMissingNamespace(ctx, o.IO, client, namespace)
	}
	return refused
}

func (o *Options) print(namespace string, all []*gang.Job, pods map[types.UID][]*corev1.Pod) error {
	rows := o.rows(all, pods)
	if !o.Output.IsTable() {
		return o.printObjects(rows)
	}
	if len(all) == 0 {
		fmt.Fprintln(o.IO.ErrOut, o.nothing(namespace))
		return nil
	}
	return o.printTable(rows)
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

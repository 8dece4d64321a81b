// Package top is `gangctl top`: who holds what, what is idle, and what of that cannot be used and why.
package top

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// What is the view that the command shows.
type What string

// What there is to show.
const (
	Node  What = "node"
	Job   What = "job"
	Queue What = "queue"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	What          What
	AllNamespaces bool
	// By is the node label by whose values nodes are summed up; empty for single nodes.
	By string
	cmdutil.WatchFlags
	From   string
	Output printer.Flags
}

// NewCommand returns the command with its three views; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show who holds what, what is idle, and what is unusable and why",
		Long: `Show who holds which nodes, GPUs and queues, what is idle, and what of that cannot be used and why.

Amounts are what the scheduler charges: the requests of pods, those that are being deleted included. The sum over nodes is the
sum over jobs and others.`,
		Example: `  # which nodes have free GPUs, and why the others cannot be used
  gangctl top node

  # which jobs hold GPUs for nothing
  gangctl top job -A`,
		SuggestFor: []string{"sinfo", "usage", "nodes", "gpus"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.Usagef("top needs node, job or queue").WithHint("for example: gangctl top node")
			}
			return failure.Usagef("top %q: must be one of node, job, queue", args[0]).WithHint("for example: gangctl top node")
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNode(f, runF), newJob(f, runF), newQueue(f, runF))
	return cmd
}

func newNode(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client, What: Node}
	cmd := o.complete(runF, &cobra.Command{
		Use: "node", Aliases: []string{"nodes", "no"},
		Short: "Show what is used and free on each node, and why idle GPUs are unusable",
		Long: `Show for each node its accelerators, used of all (those that went unhealthy stay in the total, marked with !), CPU, memory and
pod slots as requested, the gangs on it, and in NOTE what cannot be used and why.

FREE are the GPUs that a pod could get now that requests one, with the CPU and memory that pods here usually request with a GPU
(the median), and that tolerates no taints. The lines below the table sum up each kind of accelerator, and give the largest gang
that starts now for each number of GPUs a member. -o wide shows a cell for each accelerator, with the letter of its consumer.

--by KEY sums nodes up by their value of a label, such as a rack's or a zone's: the domains that the members of a gang may have to
share, with the largest gang that starts in each. Nodes without the label are in no domain.`,
		Example: `  # the nodes, and what the cluster has free
  gangctl top node

  # who sits where, GPU by GPU, kept up to date
  gangctl top node -o wide -w

  # which zone has room for a whole gang
  gangctl top node --by topology.kubernetes.io/zone`,
	})
	cmd.Flags().StringVar(&o.By, "by", "", "Sum nodes up by the values of this label, such as topology.kubernetes.io/zone")
	return cmd
}

func newJob(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client, What: Job}
	cmd := o.complete(runF, &cobra.Command{
		Use: "job", Aliases: []string{"jobs"},
		Short: "Show what each job holds, for how long it has held it idle, and why it waits",
		Long: `Show for each job that has not ended how many GPUs its members request and hold, and why it waits.

IDLE-HELD is how long its members have held GPUs so far while their gang was not whole, in GPU-minutes. WHY is why-pending's code
and first line.`,
		Example: `  # the jobs of the context's namespace
  gangctl top job

  # those of every namespace, as JSON
  gangctl top job -A -o json`,
	})
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Show the jobs of all namespaces")
	return cmd
}

func newQueue(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client, What: Queue}
	return o.complete(runF, &cobra.Command{
		Use: "queue", Aliases: []string{"queues"},
		Short: "Show what each queue uses of its quota, and what waits in it",
		Long: `Show the queues of Volcano, kube-batch, KAI and Kueue, and those that jobs name without there being an object: what is used of the
quota, how many jobs run and wait, and how many GPUs those that wait lack. Jobs outside of queues come last.

What a queue of Kueue uses is what it has admitted, and its quota the nominal one; a queue that borrows uses more than it has.`,
		Example: `  # the queues of the cluster
  gangctl top queue

  # with their kind and what is above them
  gangctl top queue -o wide`,
	})
}

// complete adds what the three views have in common.
func (o *Options) complete(runF func(context.Context, *Options) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return failure.Usagef("top %s takes no arguments, got %q", o.What, args[0])
		}
		return nil
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.validate(cmd); err != nil {
			return err
		}
		if runF != nil {
			return runF(cmd.Context(), o)
		}
		return o.run(cmd.Context())
	}
	flags := cmd.Flags()
	o.WatchFlags.AddFlags(flags, "Watch, and redraw in place until q is pressed; into a pipe, print one frame after the other",
		"With --watch: how often to draw what only time has changed, or to print a frame into a pipe")
	flags.StringVar(&o.From, "from", "", "Show a saved file instead of the cluster; - is standard input")
	flags.BoolVar(&o.Output.NoHeaders, "no-headers", false, "Print the rows only")
	o.Output.AddFlags(cmd, printer.WithTemplates(printer.JSON, printer.YAML, printer.Wide)...)
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	typed := cmd.Flags().Changed // a default from the settings that does not apply is no mistake
	if err := o.validateBy(o.What == Node && typed("by")); err != nil {
		return err
	}
	switch {
	case o.By != "" && o.Output.Output == printer.Wide:
		return failure.Usagef("--by has no wide form").WithHint("leave out --by or -o wide")
	case o.AllNamespaces && typed("namespace"):
		return failure.Usagef("--all-namespaces and --namespace cannot be used together").WithHint("leave out one of them")
	case o.What != Job && typed("namespace"):
		return failure.Usagef("--namespace has no effect: %ss have none", o.What).WithHint("leave it out")
	case o.Watch && o.From != "":
		return failure.Usagef("--watch needs a cluster: a saved file does not change").WithHint("leave out --watch or --from")
	case o.Watch && !o.Output.IsTable():
		return failure.Usagef("--watch shows tables, not -o %s", o.Output.Output).WithHint("leave out one of them")
	case typed("no-headers") && !o.Output.IsTable():
		return failure.Usagef("--no-headers has no effect with -o %s", o.Output.Output).WithHint("leave it out")
	}
	if err := o.WatchFlags.Validate(cmd.Flags()); err != nil {
		return err
	}
	return o.Output.Validate()
}

// Package submit is `gangctl submit`: it renders a job and its gang, or completes those of a file, and creates both or neither.
//
// Every submission is a batch, one job is a batch of one, and run takes it through five steps, each with a file of its name:
// parse flags, a file or the answers of the wizard into desired jobs; decide what depends on the cluster; render objects; rehearse
// them with dry runs; create them.
package submit

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// NewCommand returns the command, with one subcommand for each kind of job that flags can describe.
func NewCommand(f *cmdutil.Factory) *cobra.Command {
	var names []string
	o := &FileOptions{Submission: Submission{IO: f.IO, Namespace: f.Namespace, Client: f.Client}, Suffix: f.Suffix}
	unknownKind := func(typed string) error {
		err := failure.Usagef("submit %q: the kinds of job are: %s", typed, strings.Join(names, ", "))
		if meant := kindMeant(typed, names); meant != "" {
			return err.WithHint("did you mean gangctl submit %s?", meant)
		}
		return err.WithHint("jobs of other kinds are submitted from a file: gangctl submit -f FILE")
	}
	cmd := &cobra.Command{
		Use:   "submit KIND | -f FILE",
		Short: "Submit a gang job",
		Long: `Submit a job whose members start together or not at all: described by flags, or by a file.

A file holds TFJobs in YAML or JSON, of any version from v1alpha2 on, PyTorchJobs, MPIJobs, XGBoostJobs, PaddleJobs, JAXJobs, TrainJobs, JobSets,
LeaderWorkerSets, RayJobs, RayClusters and Jobs of several members, the PodGroups of their gangs, and other objects that they need: ConfigMaps,
Services, volume claims. Old versions and layouts are converted, and what changed is noted. What the file has stays. What a job lacks to be a
gang is added: the PodGroup, or in --dialect labels the labels that stand for it, the group reference of the pods, the scheduler and the job's
scheduling policy. A JobSet whose members are made one after another is refused: a gang of them would wait for itself. Each replica of a
LeaderWorkerSet is a gang of its own, without an object: it is given the scheduler. A field that gangctl does not know is noted with its line,
and left to the API server, which takes it or refuses it.

All that a file holds is created, or nothing: what the jobs need first, then each job and its gang. An object that is there
already, and is as the file has it, is used. With -o name each is a line of its own, as kubectl prints them: what a job needs, the job,
and then what it owns, such as its PodGroup.

--dry-run=fit reports whether the gang would start now, and if not, why, with the answer and the exit code of why-pending, but
0 where it would. Of several jobs each is judged as if those before it had been submitted: one that starts takes its room, its
quota and its share of a queue. The exit code is then the worst.`,
		SuggestFor: []string{"sbatch", "srun", "qsub", "create", "run"},
		Example: `  # 4 workers with 2 GPUs each
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py

  # the same in PyTorch, and without any operator
  gangctl submit pytorch llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 2 -- torchrun train.py
  gangctl submit job llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 --framework tensorflow -- python train.py

  # with Kubeflow Trainer v2, which has the runtime
  gangctl submit train llama --runtime torch-distributed --nodes 4 --gpus 8 -- torchrun train.py

  # a job that is kept in a file, as a gang; return when all its members run
  gangctl submit -f job.yaml --wait

  # would it start now?
  gangctl submit -f job.yaml --dry-run=fit`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("filename") {
				o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
				return o.submit(cmd, args)
			}
			if len(args) == 0 {
				return failure.Usagef("submit needs the kind of job, or a file").WithHint("gangctl submit tf --help, or gangctl submit -f FILE")
			}
			return unknownKind(args[0])
		},
	}
	cmd.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		if typed := failed.Flags().Args(); failed == cmd && len(typed) > 0 {
			return unknownKind(typed[0]) // whose flags are not known, either
		}
		return cmd.Root().FlagErrorFunc()(failed, err)
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&o.Files, "filename", "f", nil, "File that holds the job, once for each; - is standard input")
	o.add(cmd)
	o.addFlags(cmd)
	for _, k := range kinds() {
		names = append(names, k.name)
		cmd.AddCommand(newKindCommand(f, k, nil))
	}
	names = append(names, "train")
	cmd.AddCommand(newTrainCommand(f), newTemplatesCommand(f))
	return cmd
}

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"   // create
	dryRunClient dryRun = "client" // show what would be sent; talk to no cluster
	dryRunServer dryRun = "server" // let the server check everything and store nothing
	dryRunFit    dryRun = "fit"    // report whether the gang would start now
)

// Submission are the options of every way to submit a job.
type Submission struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	DryRun  dryRun
	From    string
	Wait    watch.Target
	Timeout time.Duration
	Follow  bool
	Output  printer.Flags
}

func (s *Submission) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flagvalue.Enum(cmd, flags, &s.DryRun, "dry-run", dryRunNone, "Create nothing", dryRunNone, dryRunClient, dryRunServer, dryRunFit)
	flags.StringVar(&s.From, "from", "", "With --dry-run=fit: answer from a saved file instead of the cluster; - is standard input")
	flagvalue.Enum(cmd, flags, &s.Wait, "wait", "", "Return when the job has come so far", watch.Scheduled, watch.Running, watch.Done).
		NoOptDefVal = string(watch.Running)
	flags.DurationVar(&s.Timeout, "timeout", 0, "How long --wait waits, such as 10m (default: no limit)")
	flags.BoolVar(&s.Follow, "follow", false, "Print what all members print until the job ends; the exit code is 9 if it fails")
	s.Output.AddFlags(cmd, printer.YAML, printer.JSON, printer.Name)
}

// validate refuses flags that contradict each other.
func (s *Submission) validate(flags *pflag.FlagSet) error {
	switch {
	case s.Timeout < 0:
		return failure.Usagef("--timeout %s: must be greater than zero, such as 10m", s.Timeout)
	case flags.Changed("timeout") && s.Wait == "":
		return failure.Usagef("--timeout has no effect without --wait").WithHint("add --wait, or leave out --timeout")
	case flags.Changed("timeout") && s.Timeout == 0:
		return failure.Usagef("--timeout 0: must be greater than zero, such as 10m").WithHint("leave out --timeout to wait without limit")
	case s.Wait != "" && s.DryRun != dryRunNone:
		return failure.Usagef("--wait has no effect with --dry-run=%s: nothing is created", s.DryRun).WithHint("leave out one of the two flags")
	case s.Follow && s.DryRun != dryRunNone:
		return failure.Usagef("--follow has no effect with --dry-run=%s: nothing is created", s.DryRun).WithHint("leave out one of the two flags")
	case s.Follow && s.Wait != "":
		return failure.Usagef("--wait has no effect with --follow, which goes on until the job ends").WithHint("leave out one of the two flags")
	case s.Follow && !s.Output.IsTable():
		return failure.Usagef("--follow and --output %s cannot be used together: what members print would come after the object", s.Output.Output).
			WithHint("leave out --follow, and see what they print with `gangctl logs -f NAME`")
	case s.From != "" && s.DryRun != dryRunFit:
		return failure.Usagef("--from has no effect without --dry-run=fit: nothing is created in a file").WithHint("add --dry-run=fit, or leave out --from")
	case s.DryRun == dryRunFit && s.Output.Output == printer.Name:
		return failure.Usagef("--output name: the answer of --dry-run=fit is not an object").WithHint("use -o json or -o yaml, or leave it out")
	}
	return s.Output.Validate()
}

// run is every submission. It ends after rendering with --dry-run=client, and after rehearsing with --dry-run=fit.
func (s *Submission) run(ctx context.Context, parse func(context.Context) (*batch, error)) error {
	desired, err := parse(ctx)
	if err != nil || desired == nil {
		return err
	}
	t, err := s.connect(ctx, desired)
	if err != nil {
		return err
	}
	decided, err := s.decide(ctx, t, desired)
	if err != nil {
		return err
	}
	candidates, err := s.render(desired, decided)
	if err != nil {
		return err
	}
	switch s.DryRun {
	case dryRunClient:
		return s.print(manifests(desired.others, first(candidates)))
	case dryRunFit:
		return s.rehearseFit(ctx, t, desired, candidates)
	}
	c := &creator{client: t.client, io: s.IO, dryRun: s.DryRun == dryRunServer}
	rehearsed, err := c.rehearse(ctx, desired, candidates)
	if err != nil {
		return err
	}
	c.noteMissing(ctx, desired, rehearsed)
	created, err := c.create(ctx, desired, decided, rehearsed)
	if err != nil {
		return err
	}
	return s.report(ctx, t.client, created)
}

// target is the cluster that a submission is made to.
type target struct {
	// client is nil where there is no API server: with --dry-run=client and --from.
	client *kube.Client
	// snapshot is the cluster that --dry-run=fit answers from; nil otherwise.
	snapshot *snapshot.Snapshot
}

// connect opens the cluster that --dry-run leaves to the submission.
func (s *Submission) connect(ctx context.Context, b *batch) (*target, error) {
	t := &target{}
	var err error
	switch s.DryRun {
	case dryRunClient:
	case dryRunFit:
		t.snapshot, t.client, err = collect.Read(ctx, s.From, s.IO.In, s.Client, collect.Options{Namespace: b.jobsNamespace(), Now: s.IO.Clock.Now})
		if err == nil {
			t.snapshot, err = b.addOthers(t.snapshot)
		}
	default:
		t.client, err = s.Client()
	}
	return t, err
}

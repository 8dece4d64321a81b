package submit

import (
	"context"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/printer"
)

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"   // create
	dryRunClient dryRun = "client" // show what would be sent; talk to no cluster
	dryRunServer dryRun = "server" // let the server check everything and store nothing
)

// TFOptions are what `gangctl submit tf` works with.
type TFOptions struct {
	IO         *iostreams.IOStreams
	Namespace  func() (string, error)
	Client     func() (*kube.Client, error)
	Suffix     func() string
	ConfigPath string
	// CommandLine is what the job keeps of the command line.
	CommandLine string

	Name           string
	Image          string
	Chief          role
	PS             role
	Worker         role
	Evaluator      role
	All            resources
	GPUResource    string
	Env            []string
	WorkingDir     string
	PriorityClass  string
	RestartPolicy  kubeflowv1.RestartPolicy
	CleanPodPolicy kubeflowv1.CleanPodPolicy
	MinAvailable   int32
	Scheduler      string
	Dialect        gang.Dialect
	Labels         []string
	Annotations    []string
	Command        []string
	DryRun         dryRun
	Wait           target
	Timeout        time.Duration
	Output         printer.Flags
}

// NewTFCommand returns `gangctl submit tf`; runF replaces the run in tests.
func NewTFCommand(f *factory.Factory, runF func(context.Context, *TFOptions) error) *cobra.Command {
	o := &TFOptions{IO: f.IO, Suffix: f.Suffix, ConfigPath: f.ConfigPath}
	cmd := &cobra.Command{
		Use:   "tf [NAME] [flags] [-- COMMAND [ARGUMENT…]]",
		Short: "Submit a TensorFlow job (TFJob)",
		Long: `Submit a TensorFlow job: a TFJob of the Kubeflow Training Operator whose members are one gang. Either as many as
--min-available (default: all) get a place together, or none holds any.

The words after -- are the command of every member, exactly as typed: no shell reads them, and no $(NAME) is replaced.
For a shell, name it: -- sh -c 'python train.py && touch /done'.

CPU and memory become requests and equal limits. A failed member is restarted in place (--restart-policy OnFailure).`,
		Example: `  # 4 workers with 2 GPUs each
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py --epochs 10

  # 3 workers and a parameter server; return when all members run, or after ten minutes
  gangctl submit tf --image tensorflow/tensorflow:2.17.0 --workers 3 --ps 1 --cpu 4 --memory 16Gi --wait --timeout 10m`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
			o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
			if err := o.complete(cmd, args); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
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

func (o *TFOptions) run(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	objects, err := o.render(namespace)
	if err != nil {
		return err
	}
	if o.DryRun == dryRunClient {
		return o.print(objects.Job, objects.PodGroup)
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	c := &creator{client: client, io: o.IO, dryRun: o.DryRun == dryRunServer}
	job, podGroup, err := c.create(ctx, objects)
	if err != nil {
		return err
	}
	if err := o.printStored(job, podGroup); err != nil {
		return o.unseen(err, job)
	}
	if o.Wait == targetNone {
		return nil
	}
	w := &waiter{client: client, io: o.IO, target: o.Wait, timeout: o.Timeout}
	return w.wait(ctx, job.GetNamespace(), job.GetName(), job.GetUID())
}

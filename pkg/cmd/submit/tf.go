package submit

import (
	"context"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
)

// TFOptions are what `gangctl submit tf` works with.
type TFOptions struct {
	Submission
	gangFlags
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
	Labels         []string
	Annotations    []string
	Command        []string
	// File is the path of a manifest that says what the job is; the flags above then say nothing.
	File string
	// schedulerChosen is false if the scheduler is gangctl's own default.
	schedulerChosen bool
}

// NewTFCommand returns `gangctl submit tf`; runF replaces the run in tests.
func NewTFCommand(f *factory.Factory, runF func(context.Context, *TFOptions) error) *cobra.Command {
	o := &TFOptions{Submission: Submission{IO: f.IO}, Suffix: f.Suffix, ConfigPath: f.ConfigPath}
	cmd := &cobra.Command{
		Use:   "tf [NAME] [flags] [-- COMMAND [ARGUMENT…]]",
		Short: "Submit a TensorFlow job (TFJob)",
		Long: `Submit a TensorFlow job: a TFJob of the Kubeflow Training Operator whose members are one gang. Either as many as
--min-available (default: all) get a place together, or none holds any.

The words after -- are the command of every member, exactly as typed: no shell reads them, and no $(NAME) is replaced.
For a shell, name it: -- sh -c 'python train.py && touch /done'.

--dry-run=fit says whether the gang would start now, and if not, why, with the answer and the exit code of why-pending, but
0 where it would.

CPU and memory become requests and equal limits. A failed member is restarted in place (--restart-policy OnFailure).`,
		Example: `  # 4 workers with 2 GPUs each
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py --epochs 10

  # would it start now?
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 --dry-run=fit

  # 3 workers and a parameter server; return when all members run, or after ten minutes
  gangctl submit tf --image tensorflow/tensorflow:2.17.0 --workers 3 --ps 1 --cpu 4 --memory 16Gi --wait --timeout 10m`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
			o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
			if cmd.Flags().Changed("filename") {
				file := &FileOptions{Submission: o.Submission, gangFlags: o.gangFlags, File: o.File, Suffix: o.Suffix, CommandLine: o.CommandLine}
				return file.submit(cmd, args)
			}
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
	return o.Submission.run(ctx, plan{
		namespace: namespace, scheduler: o.Scheduler, chosen: o.schedulerChosen, dialect: o.Dialect,
		make: func(scheduler string) (*objects, error) {
			o.Scheduler = scheduler
			return o.render(namespace)
		},
	})
}

package submit

import (
	"context"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

// NewTFCommand returns `gangctl submit tf`; runF replaces the run in tests.
func NewTFCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	return newKindCommand(f, tfKind(), runF)
}

func tfKind() kind {
	return kind{
		word: "tf", reader: tfjob.Reader(), preset: templates.TF, cleans: true,
		write: func(string) render.Kind { return render.TFJob() },
		roles: func() []*role {
			return []*role{
				{Name: string(kubeflowv1.TFJobReplicaTypeChief), count: "chief", usage: "Number of chiefs, 0 or 1", high: 1, trains: true},
				{Name: string(kubeflowv1.TFJobReplicaTypePS), count: "ps", usage: "Number of parameter servers", high: maxReplicas},
				{Name: string(kubeflowv1.TFJobReplicaTypeWorker), count: "workers", usage: "Number of workers", fallback: 1, low: 1, high: maxReplicas, trains: true},
				{Name: string(kubeflowv1.TFJobReplicaTypeEval), count: "evaluator", usage: "Number of evaluators", high: maxReplicas},
			}
		},
		restart: []kubeflowv1.RestartPolicy{kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure, kubeflowv1.RestartPolicyAlways, kubeflowv1.RestartPolicyExitCode},
		short:   "Submit a TensorFlow job (TFJob)",
		long: `Submit a TensorFlow job: a TFJob of the Kubeflow Training Operator whose members are one gang. Either as many as
--min-available (default: all) get a place together, or none holds any.`,
		example: `  # 4 workers with 2 GPUs each
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py --epochs 10

  # would it start now?
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 --dry-run=fit

  # 3 workers and a parameter server; return when all members run, or after ten minutes
  gangctl submit tf --image tensorflow/tensorflow:2.17.0 --workers 3 --ps 1 --cpu 4 --memory 16Gi --wait --timeout 10m`,
	}
}

package submit

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

func mpiKind() kind {
	return kind{
		word: "mpi", reader: mpijob.Reader(), preset: templates.MPI, cleans: true,
		write: render.MPIJob,
		roles: func() []*role {
			return []*role{
				{Name: string(kubeflowv1.MPIJobReplicaTypeLauncher), Replicas: 1},
				{Name: string(kubeflowv1.MPIJobReplicaTypeWorker), count: "workers", usage: "Number of workers, besides the launcher", fallback: 1, low: 1, high: maxReplicas, trains: true},
			}
		},
		restart: []kubeflowv1.RestartPolicy{kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure},
		flags: func(o *Options, cmd *cobra.Command) {
			flagvalue.Count(cmd.Flags(), &o.SlotsPerWorker, "slots-per-worker", 0, 1, maxProcesses, "Processes that each worker runs (default: one a GPU, or one)")
		},
		short: "Submit an MPI job (MPIJob)",
		long: `Submit an MPI job: an MPIJob of the MPI Operator (v2beta1) or of the Kubeflow Training Operator (v1), whichever the cluster
serves. The launcher and the workers are one gang: either as many as --min-available (default: all) get a place together, or
none holds any.

The words after -- are the command of the launcher; workers wait for it.`,
		example: `  # 4 workers with 8 GPUs each, a process a GPU
  gangctl submit mpi allreduce --image horovod/horovod:0.28.1 --workers 4 --gpus 8 -- mpirun python train.py

  # would it start now?
  gangctl submit mpi allreduce --image horovod/horovod:0.28.1 --workers 4 --gpus 8 --launcher-cpu 1 --dry-run=fit`,
	}
}

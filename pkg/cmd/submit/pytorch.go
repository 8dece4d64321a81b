package submit

import (
	"strconv"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang/kind/pytorchjob"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

func pytorchKind() kind {
	return kind{
		word: "pytorch", reader: pytorchjob.Reader(), preset: templates.PyTorch, cleans: true,
		write: func(string) render.Kind { return render.PyTorchJob() },
		roles: func() []*role {
			return []*role{{Name: string(kubeflowv1.PyTorchJobReplicaTypeWorker), count: "workers", usage: "Number of members; the first is the master, which trains like the others",
				fallback: 1, low: 1, high: maxReplicas, trains: true}}
		},
		spread: func(roles []render.Role) []render.Role {
			master, workers := roles[0], roles[0]
			master.Name, master.Replicas = string(kubeflowv1.PyTorchJobReplicaTypeMaster), 1
			workers.Replicas--
			return []render.Role{master, workers}
		},
		restart: []kubeflowv1.RestartPolicy{kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure, kubeflowv1.RestartPolicyAlways, kubeflowv1.RestartPolicyExitCode},
		flags:   func(o *Options, cmd *cobra.Command) { o.addProcessesFlag(cmd, "") },
		check:   func(o *Options, _ func(string) bool) error { return o.validateProcesses() },
		short:   "Submit a PyTorch job (PyTorchJob)",
		long: `Submit a PyTorch job: a PyTorchJob of the Kubeflow Training Operator whose members are one gang. Either as many as
--min-available (default: all) get a place together, or none holds any.

The first of the --workers is the job's Master, with rank 0. The operator tells every member where it is: MASTER_ADDR,
MASTER_PORT, WORLD_SIZE and RANK for the program, PET_… for torchrun.`,
		example: `  # 4 members with 8 GPUs each, and as many processes as GPUs on each of them
  gangctl submit pytorch llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 8 --nproc-per-node 8 -- torchrun train.py

  # would it start now?
  gangctl submit pytorch llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 8 --dry-run=fit`,
	}
}

// addProcessesFlag adds the flag that says how many processes of PyTorch a member has; condition ends its help.
func (o *Options) addProcessesFlag(cmd *cobra.Command, condition string) {
	cmd.Flags().StringVar(&o.ProcessesPerNode, "nproc-per-node", "", "Processes of each member: a number, auto, gpu or cpu"+condition)
}

func (o *Options) validateProcesses() error {
	switch o.ProcessesPerNode {
	case "", "auto", "gpu", "cpu":
		return nil
	}
	if n, err := strconv.Atoi(o.ProcessesPerNode); err != nil || n < 1 || n > maxProcesses {
		return failure.Usagef("--nproc-per-node %q: must be auto, gpu, cpu, or a whole number from 1 to %d", o.ProcessesPerNode, maxProcesses)
	}
	return nil
}

package submit

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

func jobKind() kind {
	return kind{
		word: "job", reader: batchjob.Reader(), preset: templates.Job,
		write: func(string) render.Kind { return render.IndexedJob() },
		roles: func() []*role {
			return []*role{{Name: batchjob.Role, count: "workers", usage: "Number of members", fallback: 1, low: 1, high: maxReplicas, trains: true}}
		},
		restart: []kubeflowv1.RestartPolicy{kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure},
		flags: func(o *Options, cmd *cobra.Command) {
			flagvalue.Enum(cmd, cmd.Flags(), &o.Framework, "framework", render.NoFramework, "What the environment of members is made for",
				render.TensorFlow, render.Torch, render.NoFramework)
			o.addProcessesFlag(cmd, ", with --framework torch")
		},
		check: func(o *Options, typed func(string) bool) error {
			if typed("nproc-per-node") && o.Framework != render.Torch {
				return failure.Usagef("--nproc-per-node has no effect with --framework %s", o.Framework).WithHint("add --framework torch, or leave out --nproc-per-node")
			}
			return o.validateProcesses()
		},
		short: "Submit a job that needs no operator (batch/v1 Job)",
		long: `Submit a Job of Kubernetes itself, with as many members at a time as there are in all (an Indexed Job), as one gang. Either as
many as --min-available (default: all) get a place together, or none holds any. It needs no operator.

A headless Service of the job's name lets members find each other, as NAME-INDEX.NAME. --framework tensorflow gives them
TF_CONFIG, --framework torch MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, and PET_… for torchrun. Every member finds its index in
JOB_COMPLETION_INDEX.`,
		example: `  # 4 members with 2 GPUs each, which find each other by TF_CONFIG
  gangctl submit job llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 --framework tensorflow -- python train.py

  # PyTorch without an operator
  gangctl submit job llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 8 --framework torch --nproc-per-node 8 -- torchrun train.py`,
	}
}

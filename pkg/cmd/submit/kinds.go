package submit

import (
	"strconv"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/pytorchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

// kind has the particulars of submitting one kind of job. Everything else is the same for all.
type kind struct {
	// name is that of the command, and begins names that are generated.
	name string
	// short, long and example are its help.
	short, long, example string
	// reader reads what is submitted.
	reader gang.JobReader
	// preset is the job that flags override.
	preset func() []byte
	// write returns the writer of a job in an API version; an empty one is that of the preset.
	write func(version string) render.Kind
	// roles are those that have flags, in the order in which members are shown.
	roles func() []*role
	// splitRoles turns the roles of the flags into those of the job; nil where they are the same.
	splitRoles func([]render.Role) []render.Role
	// restart are the restart policies that the kind knows.
	restart []kubeflowv1.RestartPolicy
	// cleans reports whether the kind knows which pods to delete when the job ends.
	cleans bool
	// flags adds the flags that only this kind has; nil without.
	flags func(o *Options, cmd *cobra.Command)
	// check refuses what flags of the kind cannot mean; nil without.
	check func(o *Options, changed func(string) bool) error
}

// kinds are the kinds of job that flags can describe, the most usual first.
func kinds() []kind { return []kind{tfKind(), pytorchKind(), mpiKind(), rayKind(), jobKind()} }

// kindMeant is the kind, of those that flags can describe, that was probably meant by another name: that of the objects, or a slip; empty for none.
func kindMeant(typed string, names []string) string {
	reader, known := jobkinds.ByName(typed)
	if !known {
		return append(suggest.Similar(typed, names), "")[0]
	}
	for _, k := range kinds() {
		if k.reader.GroupKind == reader.GroupKind {
			return k.name
		}
	}
	if reader.GroupKind == trainjob.Reader().GroupKind {
		return "train"
	}
	return ""
}

// role is the part of the command line about one role.
type role struct {
	resources
	// Name is the role as the kind spells it.
	Name     string
	Replicas int32
	Image    string

	// count is the flag for how many members the role has, and usage its help; empty where that is fixed.
	count, usage string
	// fallback, low and high are the number without the flag, and the range.
	fallback, low, high int32
	// trains reports whether --gpus is meant for the role.
	trains bool
}

func tfKind() kind {
	return kind{
		name: "tf", reader: tfjob.Reader(), preset: templates.TF, cleans: true,
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

func pytorchKind() kind {
	return kind{
		name: "pytorch", reader: pytorchjob.Reader(), preset: templates.PyTorch, cleans: true,
		write: func(string) render.Kind { return render.PyTorchJob() },
		roles: func() []*role {
			return []*role{{Name: string(kubeflowv1.PyTorchJobReplicaTypeWorker), count: "workers", usage: "Number of members; the first is the master, which trains like the others",
				fallback: 1, low: 1, high: maxReplicas, trains: true}}
		},
		splitRoles: func(roles []render.Role) []render.Role {
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

The first of the --workers is the job's Master, with rank 0. The operator sets for every member MASTER_ADDR,
MASTER_PORT, WORLD_SIZE and RANK for the program, PET_… for torchrun.`,
		example: `  # 4 members with 8 GPUs each, and as many processes as GPUs on each of them
  gangctl submit pytorch llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 8 --nproc-per-node 8 -- torchrun train.py

  # would it start now?
  gangctl submit pytorch llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 8 --dry-run=fit`,
	}
}

// addProcessesFlag adds the flag for how many processes of PyTorch a member has; condition ends its help.
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

func mpiKind() kind {
	return kind{
		name: "mpi", reader: mpijob.Reader(), preset: templates.MPI, cleans: true,
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

The arguments after -- are the command of the launcher; workers wait for it.`,
		example: `  # 4 workers with 8 GPUs each, a process a GPU
  gangctl submit mpi allreduce --image horovod/horovod:0.28.1 --workers 4 --gpus 8 -- mpirun python train.py

  # would it start now?
  gangctl submit mpi allreduce --image horovod/horovod:0.28.1 --workers 4 --gpus 8 --launcher-cpu 1 --dry-run=fit`,
	}
}

func jobKind() kind {
	return kind{
		name: "job", reader: batchjob.Reader(), preset: templates.Job,
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
		check: func(o *Options, changed func(string) bool) error {
			if changed("nproc-per-node") && o.Framework != render.Torch {
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

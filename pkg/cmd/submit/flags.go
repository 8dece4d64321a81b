package submit

import (
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/flagvalue"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/render"
)

// The largest counts that are taken for an intention rather than a slip of the finger.
const (
	maxReplicas = 10000
	maxGPUs     = 1024
)

// defaultScheduler is the name under which gangctl's own scheduler serves.
const defaultScheduler = "gang-scheduler"

// gangFlags say how the members are to start together.
type gangFlags struct {
	Scheduler    string
	MinAvailable int32
	Dialect      gang.Dialect
}

func (g *gangFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&g.Scheduler, "scheduler", "", "Scheduler of the members (default: "+defaultScheduler+"; with --dialect none the cluster's)")
	flagvalue.Count(flags, &g.MinAvailable, "min-available", 0, 1, 4*maxReplicas, "Members that must start together (default: all)")
	flagvalue.Enum(cmd, flags, &g.Dialect, "dialect", gang.SchedulerPlugins, "How the gang is declared",
		gang.SchedulerPlugins, gang.Labels, render.NoGang)
}

// chosen reports whether the scheduler was, and fills in the default.
func (g *gangFlags) chosen() bool {
	if g.Scheduler != "" || g.Dialect == render.NoGang {
		return true
	}
	g.Scheduler = defaultScheduler
	return false
}

// unset is the GPU count of a role whose flag was not given.
const unset int64 = -1

// resources are those of one member.
type resources struct {
	GPUs        int64
	CPU, Memory *resource.Quantity
}

// role is what the command line says about one replica type.
type role struct {
	resources
	Type     kubeflowv1.ReplicaType
	Replicas int32
	Image    string
}

// flag is the prefix of the role's flags, and the middle of its members' names.
func (r *role) flag() string { return strings.ToLower(string(r.Type)) }

// countFlag is the flag that says how many members the role has.
func (r *role) countFlag() string {
	if r.Type == kubeflowv1.TFJobReplicaTypeWorker {
		return "workers"
	}
	return r.flag()
}

// roles are the roles in the order in which they are shown and created.
func (o *TFOptions) roles() []*role { return []*role{&o.Chief, &o.PS, &o.Worker, &o.Evaluator} }

func (o *TFOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	o.Chief.Type, o.PS.Type = kubeflowv1.TFJobReplicaTypeChief, kubeflowv1.TFJobReplicaTypePS
	o.Worker.Type, o.Evaluator.Type = kubeflowv1.TFJobReplicaTypeWorker, kubeflowv1.TFJobReplicaTypeEval

	flags.StringVar(&o.Name, "name", "", "Name of the job, instead of NAME (default: tf- and five random characters)")
	flags.StringVar(&o.Image, "image", "", "Container image of every role")
	flags.StringVarP(&o.File, "filename", "f", "", "File that holds the job, instead of flags; - is standard input")
	flagvalue.Count(flags, &o.Worker.Replicas, "workers", 1, 1, maxReplicas, "Number of workers")
	flagvalue.Count(flags, &o.PS.Replicas, "ps", 0, 0, maxReplicas, "Number of parameter servers")
	flagvalue.Count(flags, &o.Chief.Replicas, "chief", 0, 0, 1, "Number of chiefs, 0 or 1")
	flagvalue.Count(flags, &o.Evaluator.Replicas, "evaluator", 0, 0, maxReplicas, "Number of evaluators")
	flagvalue.Count(flags, &o.All.GPUs, "gpus", 0, 0, maxGPUs, "GPUs of each worker, and of the chief")
	flagvalue.Quantity(flags, &o.All.CPU, "cpu", "CPUs of each member")
	flagvalue.Quantity(flags, &o.All.Memory, "memory", "Memory of each member")
	flags.StringVar(&o.GPUResource, "gpu-resource", "nvidia.com/gpu", "Extended resource that the GPU flags count")
	flags.StringArrayVar(&o.Env, "env", nil, "Environment variable NAME=VALUE of each member (repeatable)")
	flags.StringVar(&o.WorkingDir, "working-dir", "", "Working directory of each member (default: the image's)")

	o.add(cmd)
	flags.StringVar(&o.PriorityClass, "priority-class", "", "PriorityClass of the members")
	flagvalue.Enum(cmd, flags, &o.RestartPolicy, "restart-policy", kubeflowv1.RestartPolicyOnFailure, "What happens to a member that fails",
		kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure, kubeflowv1.RestartPolicyAlways, kubeflowv1.RestartPolicyExitCode)
	flagvalue.Enum(cmd, flags, &o.CleanPodPolicy, "clean-pod-policy", kubeflowv1.CleanPodPolicyRunning, "Pods to delete when the job ends",
		kubeflowv1.CleanPodPolicyRunning, kubeflowv1.CleanPodPolicyAll, kubeflowv1.CleanPodPolicyNone)
	flags.StringArrayVar(&o.Labels, "label", nil, "Label KEY=VALUE of the job and its pods (repeatable)")
	flags.StringArrayVar(&o.Annotations, "annotation", nil, "Annotation KEY=VALUE of the job and its pods (repeatable)")

	for _, r := range o.roles() {
		o.addRoleFlags(flags, r)
	}

	o.Submission.addFlags(cmd)
}

func (o *TFOptions) addRoleFlags(flags *pflag.FlagSet, r *role) {
	name := r.flag()
	r.GPUs = unset
	flags.StringVar(&r.Image, name+"-image", "", "Container image of the "+name+" role, instead of --image")
	flags.Var(&optionalCount{p: &r.GPUs, high: maxGPUs}, name+"-gpus", "GPUs of each "+name+gpuDefault(r))
	flagvalue.Quantity(flags, &r.CPU, name+"-cpu", "CPUs of each "+name+", instead of --cpu")
	flagvalue.Quantity(flags, &r.Memory, name+"-memory", "Memory of each "+name+", instead of --memory")
}

func gpuDefault(r *role) string {
	if r.takesGPUs() {
		return ", instead of --gpus"
	}
	return ""
}

// takesGPUs reports whether --gpus is meant for the role: the ones that train.
func (r *role) takesGPUs() bool {
	return r.Type == kubeflowv1.TFJobReplicaTypeWorker || r.Type == kubeflowv1.TFJobReplicaTypeChief
}

package submit

import (
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// The largest counts that are taken for an intention rather than a slip of the finger.
const (
	maxReplicas  = 10000
	maxGPUs      = 1024
	maxProcesses = 4096
)

// gangFlags say how the members are to start together.
type gangFlags struct {
	Scheduler    string
	MinAvailable int32
	Dialect      gang.Dialect
	Queue        string
}

func (g *gangFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&g.Scheduler, "scheduler", "", "Scheduler of the members (default: the one that reads the dialect, such as "+schedulerplugins.DefaultScheduler+")")
	flagvalue.Count(flags, &g.MinAvailable, "min-available", 0, 1, 4*maxReplicas, "Members that must start together (default: all)")
	flagvalue.Enum(cmd, flags, &g.Dialect, "dialect", auto, "How the gang is declared; auto is what the cluster enforces",
		auto, gang.Native, gang.SchedulerPlugins, gang.Volcano, gang.KubeBatch, gang.Labels, gang.None)
	flags.StringVar(&g.Queue, "queue", "", "Queue in which the gang waits: one of Volcano or kube-batch, or a LocalQueue of Kueue")
}

// unset is the GPU count of a role whose flag was not given.
const unset int64 = -1

// resources are those of one member.
type resources struct {
	GPUs        int64
	CPU, Memory *resource.Quantity
}

// flag is the prefix of the role's flags, and the middle of its members' names.
func (r *role) flag() string { return strings.ToLower(r.Name) }

func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Name, "name", "", "Name of the job, instead of NAME (default: "+o.kind.word+"- and five random characters)")
	flags.StringVar(&o.Image, "image", "", "Container image of every role")
	flags.StringVar(&o.Template, "template", "", "Job to start from: one of submit templates list, or the path of a file; flags are laid over it")
	flags.StringVarP(&o.File, "filename", "f", "", "File that holds the job, instead of flags; - is standard input")
	var training []string
	for _, r := range o.shown() {
		if r.trains {
			training = append(training, r.flag())
		}
		if r.count != "" {
			flagvalue.Count(flags, &r.Replicas, r.count, r.fallback, r.low, r.high, r.usage)
		}
	}
	flagvalue.Count(flags, &o.All.GPUs, "gpus", 0, 0, maxGPUs, "GPUs of each "+strings.Join(training, ", and of the "))
	flagvalue.Quantity(flags, &o.All.CPU, "cpu", "CPUs of each member")
	flagvalue.Quantity(flags, &o.All.Memory, "memory", "Memory of each member")
	flags.StringVar(&o.GPUResource, "gpu-resource", "nvidia.com/gpu", "Extended resource that the GPU flags count")
	flags.StringArrayVar(&o.Env, "env", nil, "Environment variable NAME=VALUE of each member (repeatable)")
	flags.StringVar(&o.WorkingDir, "working-dir", "", "Working directory of each member (default: the image's)")

	o.add(cmd)
	flags.StringVar(&o.PriorityClass, "priority-class", "", "PriorityClass of the members")
	flagvalue.Enum(cmd, flags, &o.RestartPolicy, "restart-policy", kubeflowv1.RestartPolicyOnFailure, "What happens to a member that fails", o.kind.restart...)
	if o.kind.cleans {
		flagvalue.Enum(cmd, flags, &o.CleanPodPolicy, "clean-pod-policy", kubeflowv1.CleanPodPolicyRunning, "Pods to delete when the job ends",
			kubeflowv1.CleanPodPolicyRunning, kubeflowv1.CleanPodPolicyAll, kubeflowv1.CleanPodPolicyNone)
	}
	flags.StringArrayVar(&o.Labels, "label", nil, "Label KEY=VALUE of the job and its pods (repeatable)")
	flags.StringArrayVar(&o.Annotations, "annotation", nil, "Annotation KEY=VALUE of the job and its pods (repeatable)")
	flags.StringArrayVar(&o.Set, "set", nil, "Set a field of the job that has no flag: PATH=VALUE (repeatable)")

	o.addPodFlags(cmd)
	if o.kind.flags != nil {
		o.kind.flags(o, cmd)
	}
	for _, r := range o.Roles {
		r.GPUs = unset
		if len(o.Roles) > 1 { // of the only role, the flags of all members say it
			addRoleFlags(flags, r)
		}
	}
	o.Submission.addFlags(cmd)
}

// shown are the roles, those with the members that matter most first.
func (o *Options) shown() []*role {
	roles := slices.Clone(o.Roles)
	slices.SortStableFunc(roles, func(a, b *role) int { return int(b.fallback - a.fallback) })
	return roles
}

func addRoleFlags(flags *pflag.FlagSet, r *role) {
	name, instead := r.flag(), ""
	if r.trains {
		instead = ", instead of --gpus"
	}
	flags.StringVar(&r.Image, name+"-image", "", "Container image of the "+name+" role, instead of --image")
	flags.Var(&optionalCount{p: &r.GPUs, high: maxGPUs}, name+"-gpus", "GPUs of each "+name+instead)
	flagvalue.Quantity(flags, &r.CPU, name+"-cpu", "CPUs of each "+name+", instead of --cpu")
	flagvalue.Quantity(flags, &r.Memory, name+"-memory", "Memory of each "+name+", instead of --memory")
}

package submit

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/manifest"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// TrainOptions are the dependencies, flags and arguments of `gangctl submit train`. What flags do not set is the runtime's.
type TrainOptions struct {
	FileOptions
	resources
	// Name is that of the job, and Runtime that of the runtime, of the cluster unless Namespaced.
	Name, Runtime string
	Namespaced    bool
	Nodes, Procs  int32
	Image         string
	GPUResource   string
	Env           []string
	Command       []string
}

// newTrainCommand returns `gangctl submit train`.
func newTrainCommand(f *cmdutil.Factory) *cobra.Command {
	o := &TrainOptions{FileOptions: FileOptions{Submission: Submission{IO: f.IO, Namespace: f.Namespace, Client: f.Client}, Suffix: f.Suffix}}
	cmd := &cobra.Command{
		Use:   "train [NAME] [flags] [-- COMMAND [ARGUMENT…]]",
		Short: "Submit a job of Kubeflow Trainer v2 (TrainJob)",
		Long: `Submit a TrainJob of Kubeflow Trainer v2, whose nodes are one gang: either as many as --min-available (default: all) get a
place together, or none holds any. What flags leave out is as the --runtime has it: the image, the command, the framework.

The labels of the gang go into spec.runtimePatches. A TrainJob cannot name the scheduler of its pods: where its runtime names none
of gangs, the job gets a TrainingRuntime of its own, a copy of that one with the scheduler. A runtime with a podGroupPolicy makes
the gang itself, and gets no second one.

The arguments after -- are the command of every node, exactly as typed: no shell reads them.`,
		Example: `  # 4 nodes with 8 GPUs each, and as many processes as GPUs on each of them
  gangctl submit train llama --runtime torch-distributed --nodes 4 --gpus 8 -- torchrun train.py

  # would it start now?
  gangctl submit train llama --runtime torch-distributed --nodes 4 --gpus 8 --dry-run=fit`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
			if err := o.parse(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context(), func(context.Context) (*batch, error) {
				job, err := o.manifest()
				if err != nil {
					return nil, err
				}
				return o.batchOf(&manifest.Manifest{Jobs: []*unstructured.Unstructured{job}})
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Name, "name", "", "Name of the job, instead of NAME (default: train- and five random characters)")
	flags.StringVar(&o.Runtime, "runtime", "torch-distributed", "Runtime of the job: a ClusterTrainingRuntime")
	flags.BoolVar(&o.Namespaced, "namespaced-runtime", false, "The runtime is a TrainingRuntime of the job's namespace")
	flagvalue.Count(flags, &o.Nodes, "nodes", 1, 1, maxReplicas, "Number of nodes, which are the members")
	flagvalue.Count(flags, &o.GPUs, "gpus", 0, 0, maxGPUs, "GPUs of each node")
	flagvalue.CPUs(flags, &o.CPU, "cpu", "CPUs of each node")
	flagvalue.Bytes(flags, &o.Memory, "memory", "Memory of each node")
	flagvalue.Bytes(flags, &o.Storage, resize.FlagStorage, "Local disk of each node: its image's writable layer, logs and emptyDirs")
	flags.StringVar(&o.GPUResource, "gpu-resource", "nvidia.com/gpu", "Extended resource that --gpus counts")
	flagvalue.Count(flags, &o.Procs, "procs-per-node", 0, 1, maxProcesses, "Processes of each node (default: the runtime's, such as one a GPU)")
	flags.StringVar(&o.Image, "image", "", "Container image of the nodes (default: the runtime's)")
	flags.StringArrayVar(&o.Env, "env", nil, "Environment variable NAME=VALUE of each node (repeatable)")
	o.add(cmd)
	o.addFlags(cmd)
	return cmd
}

// parse reads NAME and the command after --, and refuses flags that cannot be meant.
func (o *TrainOptions) parse(cmd *cobra.Command, args []string) error {
	o.changed = cmd.Flags().Changed
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, o.Command = args[:dash], args[dash:]
	}
	switch {
	case len(args) > 1:
		return failure.Usagef("%q: submit train takes one NAME", args[1]).WithHint("put the command after --: gangctl submit train %s -- %s", shell.Quote(args[0]), shell.Join(args[1:]...))
	case len(args) == 1 && o.Name != "" && o.Name != args[0]:
		return failure.Usagef("--name %s contradicts NAME %s", o.Name, args[0]).WithHint("leave out one of the two")
	case len(args) == 1:
		if o.Name = args[0]; o.waitsFor(o.Name) {
			return errWaitValue(o.Name)
		}
	}
	o.Name = cmp.Or(o.Name, "train-"+o.Suffix())
	if err := validateObjectName("runtime", o.Runtime); err != nil {
		return err
	}
	if o.Runtime == "" {
		return failure.Usagef("--runtime is empty").WithHint("see the runtimes with `kubectl get clustertrainingruntimes`")
	}
	if err := cmdutil.CheckImage("image", o.Image); err != nil {
		return err
	}
	if err := validateGPUResource(cmd.Flags(), o.GPUResource, o.GPUs > 0); err != nil {
		return err
	}
	if err := refuseBytes(cmd.Flags(), o.Command); err != nil {
		return err
	}
	return o.validateGang(cmd.Flags())
}

// manifest is the TrainJob of the flags.
func (o *TrainOptions) manifest() (*unstructured.Unstructured, error) {
	trainer := map[string]any{"numNodes": int64(o.Nodes)}
	if o.Image != "" {
		trainer["image"] = o.Image
	}
	if len(o.Command) > 0 {
		command := make([]any, len(o.Command))
		for i, arg := range o.Command {
			command[i] = render.Literal(arg)
		}
		trainer["command"] = command
	}
	if o.Procs > 0 {
		trainer["numProcPerNode"] = int64(o.Procs)
	}
	if resources := o.requirements(); len(resources) > 0 {
		trainer["resourcesPerNode"] = resources
	}
	env, err := o.variables()
	if err != nil {
		return nil, err
	}
	if len(env) > 0 {
		trainer["env"] = env
	}
	kind := trainjob.ClusterRuntimeKind
	if o.Namespaced {
		kind = trainjob.RuntimeKind
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"runtimeRef": map[string]any{"apiGroup": trainjob.Group, "kind": kind, "name": o.Runtime}, "trainer": trainer,
	}}}
	u.SetAPIVersion(trainjob.Group + "/" + trainjob.Version)
	u.SetKind(trainjob.Kind)
	u.SetName(o.Name)
	o.source = trainjob.Kind + " " + o.Name
	return u, nil
}

// requirements are the resources of a node: CPU and memory with equal limits, GPUs as limits, from which the API server makes requests.
func (o *TrainOptions) requirements() map[string]any {
	requests, limits := map[string]any{}, map[string]any{}
	for name, quantity := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU: o.CPU, corev1.ResourceMemory: o.Memory, corev1.ResourceEphemeralStorage: o.Storage,
	} {
		if quantity != nil {
			requests[string(name)], limits[string(name)] = quantity.String(), quantity.String()
		}
	}
	if o.GPUs > 0 {
		limits[o.GPUResource] = resource.NewQuantity(o.GPUs, resource.DecimalSI).String()
	}
	all := map[string]any{}
	for key, list := range map[string]map[string]any{"requests": requests, "limits": limits} {
		if len(list) > 0 {
			all[key] = list
		}
	}
	return all
}

// variables are those of --env.
func (o *TrainOptions) variables() ([]any, error) {
	var all []any
	seen := map[string]bool{}
	for _, text := range o.Env {
		name, value, ok := strings.Cut(text, "=")
		if problems := validation.IsEnvVarName(name); !ok || len(problems) > 0 {
			return nil, failure.Usagef("--env %q: must be NAME=VALUE", name)
		}
		if seen[name] {
			return nil, failure.Usagef("--env %s is set twice", name)
		}
		seen[name] = true
		all = append(all, map[string]any{"name": name, "value": render.Literal(value)})
	}
	return all, nil
}

package submit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// The largest counts that are taken for an intention rather than a slip of the finger.
const (
	maxReplicas  = resize.MaxReplicas
	maxMinimum   = resize.MaxMinimum
	maxGPUs      = resize.MaxDevices
	maxProcesses = 4096
)

// gangFlags are how the members are to start together.
type gangFlags struct {
	Scheduler    string
	MinAvailable int32
	Dialect      gang.Dialect
	Queue        string
}

func (g *gangFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&g.Scheduler, "scheduler", "", "Scheduler of the members (default: the one that reads the dialect, such as "+schedulerplugins.DefaultScheduler+")")
	flagvalue.Count(flags, &g.MinAvailable, "min-available", 0, 1, maxMinimum, "Members that must start together (default: all)")
	flagvalue.Enum(cmd, flags, &g.Dialect, "dialect", choose.Auto, "How the gang is declared; auto is what the cluster enforces",
		choose.Auto, gang.Native, gang.SchedulerPlugins, gang.Volcano, gang.KubeBatch, gang.Labels, gang.None)
	flags.StringVar(&g.Queue, "queue", "", "Queue in which the gang waits: one of Volcano or kube-batch, or a LocalQueue of Kueue")
}

// request is the part of the flags about the gang of a job of a kind.
func (g *gangFlags) request(kind schema.GroupKind) choose.Request {
	return choose.Request{Kind: kind, Dialect: g.Dialect, Scheduler: g.Scheduler, Queue: g.Queue}
}

// unset is the GPU count of a role whose flag was not given.
const unset int64 = -1

// resources are those of one member.
type resources struct {
	GPUs        int64
	CPU, Memory *resource.Quantity
	// Storage is local disk.
	Storage *resource.Quantity
}

// flag is the prefix of the role's flags, and the middle of its members' names.
func (r *role) flag() string { return strings.ToLower(r.Name) }

func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Name, "name", "", "Name of the job, instead of NAME (default: "+o.kind.name+"- and five random characters)")
	flags.StringVar(&o.Image, "image", "", "Container image of every role")
	flags.StringVar(&o.Template, "template", "", "Job to start from: one of submit templates list, or the path of a file; flags override it")
	flags.StringArrayVarP(&o.Files, "filename", "f", nil, "File that holds the job, instead of flags, once for each; - is standard input")
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
	flagvalue.CPUs(flags, &o.All.CPU, "cpu", "CPUs of each member")
	flagvalue.Bytes(flags, &o.All.Memory, "memory", "Memory of each member")
	flagvalue.Bytes(flags, &o.All.Storage, resize.FlagStorage, "Local disk of each member: its image's writable layer, logs and emptyDirs")
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
		if len(o.Roles) > 1 { // the only role has the flags of all members
			addRoleFlags(flags, r)
		}
	}
	o.Submission.addFlags(cmd)
	flagvalue.Check(flags, o.checkValues, checkedFlags...)
}

// shown are the roles, those with the members that matter most first.
func (o *Options) shown() []*role {
	roles := slices.Clone(o.Roles)
	slices.SortStableFunc(roles, func(a, b *role) int { return int(b.fallback - a.fallback) })
	return roles
}

func addRoleFlags(flags *pflag.FlagSet, r *role) {
	flags.StringVar(&r.Image, r.flag()+"-image", "", "Container image of the "+r.flag()+" role, instead of --image")
	addResourceFlags(flags, r)
}

// addResourceFlags adds the flags for what the members of one role request.
func addResourceFlags(flags *pflag.FlagSet, r *role) {
	name, instead := r.flag(), ""
	if r.trains {
		instead = ", instead of --gpus"
	}
	flags.Var(&optionalCount{p: &r.GPUs, high: maxGPUs}, name+"-gpus", "GPUs of each "+name+instead)
	flagvalue.CPUs(flags, &r.CPU, name+"-cpu", "CPUs of each "+name+", instead of --cpu")
	flagvalue.Bytes(flags, &r.Memory, name+"-memory", "Memory of each "+name+", instead of --memory")
	flagvalue.Bytes(flags, &r.Storage, resize.RoleFlag(r.Name, resize.FlagStorage), "Local disk of each "+name+", instead of --"+resize.FlagStorage)
}

// gitSyncImage clones repositories.
const gitSyncImage = "registry.k8s.io/git-sync/git-sync:v4.4.0"

// rdmaResource is how the usual device plugin for RDMA calls what it hands out.
const rdmaResource = "rdma/hca"

// podFlags are the flags that the pods of every kind of job have in common.
type podFlags struct {
	LimitCPU, LimitMemory *resource.Quantity
	Devices               []string
	RDMA                  string

	EnvFrom     []string
	Data        []string
	HostPaths   []string
	ConfigFiles []string
	Shm         *resource.Quantity
	SyncGit     string
	SyncImage   string
	Shell       bool

	NodeSelector  []string
	Tolerations   []string
	AffinityNodes []string
	Affinity      render.AffinityPolicy
	Constraint    constraint
	Domain        string
	Topology      string
	// PreferredTopology are keys, separated by commas.
	PreferredTopology string
	HostNetwork       bool

	PullSecrets    []string
	PullPolicy     corev1.PullPolicy
	ServiceAccount string

	Retries          optional[int32]
	TimeLimit        optional[time.Duration]
	TTL              optional[time.Duration]
	TensorBoard      string
	TensorBoardImage string

	// files are the contents of ConfigFiles, by key, once they have been read.
	files map[string][]byte
}

// constraint is whether an affinity is a preference or a requirement.
type constraint string

const (
	preferred constraint = "preferred"
	required  constraint = "required"
)

func (p *podFlags) addPodFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flagvalue.CPUs(flags, &p.LimitCPU, "limit-cpu", "CPUs that each member may use at most (default: as --cpu)")
	flagvalue.Bytes(flags, &p.LimitMemory, "limit-memory", "Memory that each member may use at most (default: as --memory)")
	flags.StringArrayVar(&p.Devices, "device", nil, "Extended resource DOMAIN/NAME=COUNT, or huge pages hugepages-SIZE=AMOUNT, of each member that --gpus is for (repeatable)")
	flags.StringVar(&p.RDMA, "rdma", "", "Give each such member one RDMA device, and the right to lock memory; =DOMAIN/NAME for another resource than "+rdmaResource)
	flags.Lookup("rdma").NoOptDefVal = rdmaResource
	flags.StringArrayVar(&p.EnvFrom, "env-from", nil, "Variables from every key of secret/NAME or configmap/NAME (repeatable)")
	flags.StringArrayVar(&p.Data, "data", nil, "Mount a volume claim: CLAIM:/PATH[:ro][:SUBPATH] (repeatable)")
	flags.StringArrayVar(&p.HostPaths, "host-path", nil, "Mount a directory or file of the node: /HOST:/PATH[:ro] (repeatable)")
	flags.StringArrayVar(&p.ConfigFiles, "config-file", nil, "Give members a local file: FILE:/PATH, kept in a ConfigMap of the job, 1 MiB in all (repeatable)")
	flagvalue.Bytes(flags, &p.Shm, "shm", "Size of /dev/shm, in memory, such as 2Gi; it counts as memory of the member")
	flags.StringVar(&p.SyncGit, "sync-git", "", "Clone URL[@REF] before members start; they start in "+render.CodeDir+" unless --working-dir is set")
	flags.StringVar(&p.SyncImage, "sync-image", gitSyncImage, "Image of git-sync for --sync-git")
	flags.BoolVar(&p.Shell, "shell", false, "Let sh -c read the arguments after --")

	flags.StringArrayVar(&p.NodeSelector, "node-selector", nil, "Label KEY=VALUE that nodes must have (repeatable)")
	flags.StringArrayVar(&p.Tolerations, "toleration", nil, "Taint that members tolerate: KEY[=VALUE][:EFFECT], or all (repeatable)")
	flags.StringArrayVar(&p.AffinityNodes, "affinity-node", nil, "What the labels of nodes must be, as a selector: 'KEY in (A,B)', '!KEY', 'KEY>5' (repeatable)")
	flagvalue.Enum(cmd, flags, &p.Affinity, "affinity-policy", "", "How members are placed by each other", render.Spread, render.Pack)
	flagvalue.Enum(cmd, flags, &p.Constraint, "affinity-constraint", preferred, "How strict --affinity-policy is", preferred, required)
	flags.StringVar(&p.Domain, "affinity-domain", corev1.LabelHostname, "Node label whose values are what --affinity-policy spreads over or packs into")
	flags.StringVar(&p.Topology, "topology", "", "Node label of which all members must have the same value, such as topology.kubernetes.io/zone")
	flags.StringVar(&p.PreferredTopology, "topology-preferred", "", "Node labels of which members should have the same value, the narrowest first: KEY[,KEY]; with --topology within that one")
	flags.BoolVar(&p.HostNetwork, "host-network", false, "Give members the network of their node")

	flags.StringArrayVar(&p.PullSecrets, "image-pull-secret", nil, "Secret to pull images with (repeatable)")
	flagvalue.Enum(cmd, flags, &p.PullPolicy, "image-pull-policy", "", "When images are pulled", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	flags.StringVar(&p.ServiceAccount, "service-account", "", "ServiceAccount of the members")

	flags.Var(count(&p.Retries, maxRetries), "retries", "Failures that the job survives (default: as its controller has it)")
	flags.Var(seconds(&p.TimeLimit, time.Second), "time-limit", "How long the job may take, queueing included, such as 12h")
	flags.Var(seconds(&p.TTL, 0), "ttl", "Delete the job so long after it has ended, such as 24h")
	flags.StringVar(&p.TensorBoard, "tensorboard", "", "Run TensorBoard on what members log to this directory of a volume, or URL")
	flags.StringVar(&p.TensorBoardImage, "tensorboard-image", "", "Image of TensorBoard (default: that of the job)")
}

// maxRetries is the largest number of retries that is taken for an intention.
const maxRetries = 1000

// optional is a value that may not have been given.
type optional[T any] struct{ p *T }

// value reads one into an optional.
type value[T any] struct {
	to     *optional[T]
	parse  func(string) (T, error)
	format func(T) string
	kind   string
}

func (v value[T]) String() string {
	if v.to == nil || v.to.p == nil {
		return ""
	}
	return v.format(*v.to.p)
}

func (v value[T]) Type() string { return v.kind }

func (v value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err != nil {
		return err
	}
	v.to.p = &parsed
	return nil
}

// count reads a whole number from 0 on.
func count(to *optional[int32], high int32) value[int32] {
	return value[int32]{to: to, kind: "int", format: func(n int32) string { return strconv.Itoa(int(n)) }, parse: func(s string) (int32, error) {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 || n > int64(high) {
			return 0, fmt.Errorf("must be a whole number from 0 to %d", high)
		}
		return int32(n), nil //nolint:gosec // it was parsed with 32 bits
	}}
}

// seconds reads a duration of whole seconds, which is all that jobs know.
func seconds(to *optional[time.Duration], low time.Duration) value[time.Duration] {
	return value[time.Duration]{to: to, kind: "duration", format: time.Duration.String, parse: func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < low || d%time.Second != 0 || d/time.Second > math.MaxInt32 {
			return 0, fmt.Errorf("must be a duration of whole seconds from %s on, such as 90s, 30m or 12h", low)
		}
		return d, nil
	}}
}

// optionalCount is a count that is unset until it is given, so that 0 is a value.
type optionalCount struct {
	p    *int64
	high int64
}

func (c *optionalCount) String() string {
	if c.p == nil || *c.p == unset {
		return ""
	}
	return strconv.FormatInt(*c.p, 10)
}

func (c *optionalCount) Type() string { return "int" }

func (c *optionalCount) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > c.high {
		return fmt.Errorf("must be a whole number from 0 to %d", c.high)
	}
	*c.p = n
	return nil
}

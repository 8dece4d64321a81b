package submit

import (
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// gitSyncImage clones repositories.
const gitSyncImage = "registry.k8s.io/git-sync/git-sync:v4.4.0"

// rdmaResource is how the usual device plugin for RDMA calls what it hands out.
const rdmaResource = "rdma/hca"

// podFlags say what the pods of every kind of job are made of, besides their roles.
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
	HostNetwork   bool

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

// constraint says whether an affinity is a wish or a rule.
type constraint string

const (
	preferred constraint = "preferred"
	required  constraint = "required"
)

func (p *podFlags) addPodFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flagvalue.Quantity(flags, &p.LimitCPU, "limit-cpu", "CPUs that each member may use at most (default: as --cpu)")
	flagvalue.Quantity(flags, &p.LimitMemory, "limit-memory", "Memory that each member may use at most (default: as --memory)")
	flags.StringArrayVar(&p.Devices, "device", nil, "Extended resource DOMAIN/NAME=COUNT of each member that --gpus is for (repeatable)")
	flags.StringVar(&p.RDMA, "rdma", "", "Give each such member one RDMA device, and the right to lock memory; =DOMAIN/NAME for another resource than "+rdmaResource)
	flags.Lookup("rdma").NoOptDefVal = rdmaResource
	flags.StringArrayVar(&p.EnvFrom, "env-from", nil, "Variables from every key of secret/NAME or configmap/NAME (repeatable)")
	flags.StringArrayVar(&p.Data, "data", nil, "Mount a volume claim: CLAIM:/PATH[:ro][:SUBPATH] (repeatable)")
	flags.StringArrayVar(&p.HostPaths, "host-path", nil, "Mount a directory or file of the node: /HOST:/PATH[:ro] (repeatable)")
	flags.StringArrayVar(&p.ConfigFiles, "config-file", nil, "Give members a local file: FILE:/PATH, kept in a ConfigMap of the job, 1 MiB in all (repeatable)")
	flagvalue.Quantity(flags, &p.Shm, "shm", "Size of /dev/shm, in memory, such as 2Gi; it counts as memory of the member")
	flags.StringVar(&p.SyncGit, "sync-git", "", "Clone URL[@REF] before members start; they start in "+render.CodeDir+" unless --working-dir says otherwise")
	flags.StringVar(&p.SyncImage, "sync-image", gitSyncImage, "Image of git-sync for --sync-git")
	flags.BoolVar(&p.Shell, "shell", false, "Let sh -c read the words after --")

	flags.StringArrayVar(&p.NodeSelector, "node-selector", nil, "Label KEY=VALUE that nodes must have (repeatable)")
	flags.StringArrayVar(&p.Tolerations, "toleration", nil, "Taint that members tolerate: KEY[=VALUE][:EFFECT], or all (repeatable)")
	flags.StringArrayVar(&p.AffinityNodes, "affinity-node", nil, "What the labels of nodes must be, as a selector: 'KEY in (A,B)', '!KEY', 'KEY>5' (repeatable)")
	flagvalue.Enum(cmd, flags, &p.Affinity, "affinity-policy", "", "How members are placed by each other", render.Spread, render.Pack)
	flagvalue.Enum(cmd, flags, &p.Constraint, "affinity-constraint", preferred, "Whether --affinity-policy is a wish or a rule", preferred, required)
	flags.StringVar(&p.Domain, "affinity-domain", corev1.LabelHostname, "Node label that tells apart what --affinity-policy spreads over or packs into")
	flags.StringVar(&p.Topology, "topology", "", "Node label of which all members must have the same value, such as topology.kubernetes.io/zone")
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

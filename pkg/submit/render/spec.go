// Package render turns the spec of a command line into API objects, merged into a preset. Kinds of job, dialects of gangs and
// the contents of pods are independent of each other: any kind is written in any dialect. It is pure: no cluster, no terminal,
// and never text that is parsed again.
package render

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Role specifies the members of one role, besides what all members have in common.
type Role struct {
	// Name is the role as the kind spells it: Worker, PS, Master, Launcher.
	Name     string
	Replicas int32
	Image    string
	// GPUs is the count per member.
	GPUs int64
	// CPU, Memory and Storage, which is local disk, become requests and equal limits of each member; nil sets neither.
	CPU, Memory, Storage *resource.Quantity
	// Limits are those of CPU and memory that are to differ from the requests.
	Limits corev1.ResourceList
	// Devices are further extended resources, and huge pages, per member.
	Devices corev1.ResourceList
	// LockMemory lets the container that does the work lock memory, which RDMA needs.
	LockMemory bool
}

// Pod is the part of the pods that all roles have in common.
type Pod struct {
	// GPUResource is the extended resource that Role.GPUs counts.
	GPUResource corev1.ResourceName
	// Command is the argv of every member, exactly as the program shall see it; empty leaves the image's entrypoint. Of an
	// MPIJob only the launcher has it.
	Command []string
	// Env holds literal values, exactly as the program shall see them.
	Env           []corev1.EnvVar
	WorkingDir    string
	PriorityClass string
	// Scheduler is the schedulerName of every member; empty leaves the cluster's default.
	Scheduler string

	// EnvFrom are Secrets and ConfigMaps of which every key becomes a variable.
	EnvFrom []corev1.EnvFromSource
	// Mounts are volumes, and where the container that does the work has them.
	Mounts []Mount
	// Code is what is cloned before the container starts; nil for nothing.
	Code *Code
	// Placement is where members may run.
	Placement Placement

	PullSecrets    []string
	PullPolicy     corev1.PullPolicy
	ServiceAccount string
	// HostNetwork gives members the network of their node.
	HostNetwork bool
}

// Mount is a volume and where it is mounted; a volume of the same name may be mounted several times.
type Mount struct {
	Volume corev1.Volume
	Mount  corev1.VolumeMount
}

// Lifetime is the limits by which a job, or what is left of it, ends.
type Lifetime struct {
	// Retries is how many failures the job survives; nil leaves it to its controller.
	Retries *int32
	// Limit is how long the job may take, in seconds; nil is no limit.
	Limit *int64
	// TTL is after how many seconds the job is deleted once it has ended; nil keeps it.
	TTL *int32
}

// GangSpec is how members are to start together.
type GangSpec struct {
	// Dialect is how the gang is declared.
	Dialect gang.Dialect
	// Version is the API version of the group object; the zero value is the one that the dialect prefers.
	Version schema.GroupVersion
	// MinAvailable is how many members must start together, from 1 to all.
	MinAvailable int32
	// Queue is the queue in which the gang waits; empty is that of the scheduler's choice.
	Queue string
	// Topology is by which node labels members share a domain.
	Topology gang.Topology
}

// Spec is everything a job is made from besides its kind and its preset.
type Spec struct {
	Name, Namespace string
	// Roles in the order in which their members are shown. A role with no replicas is left out of the job.
	Roles []Role
	Pod   Pod
	Gang  GangSpec

	Lifetime Lifetime
	// Files are the contents of the job's ConfigMap, by key; it is called [FilesName].
	Files map[string][]byte
	// TensorBoard shows what members log; nil for none.
	TensorBoard *TensorBoard

	// RestartPolicy is empty to leave that of the preset.
	RestartPolicy kubeflowv1.RestartPolicy
	// CleanPodPolicy is which pods are deleted when the job ends. Jobs of Kubernetes itself have none.
	CleanPodPolicy kubeflowv1.CleanPodPolicy
	// SlotsPerWorker is how many processes of an MPIJob each worker runs; 0 leaves it to the operator.
	SlotsPerWorker int32
	// ProcessesPerNode is how many processes of PyTorch each member runs, a number, auto, gpu or cpu; empty leaves it to
	// the operator.
	ProcessesPerNode string
	// Framework is what the environment of an Indexed Job is made for.
	Framework Framework

	// Set are assignments PATH=VALUE to fields of the job, after everything else.
	Set []string

	// Labels and Annotations go on the job and on its pods.
	Labels, Annotations map[string]string
	// CommandLine is kept in [provenance.CommandAnnotation]; empty keeps none.
	CommandLine string
}

// members is the number of members over all roles.
func (s Spec) members() int32 {
	var n int32
	for _, r := range s.Roles {
		n += r.Replicas
	}
	return n
}

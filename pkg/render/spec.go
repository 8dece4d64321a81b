// Package render turns the wishes of a command line into typed API objects, laid over a preset. It is pure: no cluster, no
// terminal, and never text that is parsed again.
package render

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang"
)

// NoGang is the dialect of a job whose members are scheduled one by one.
const NoGang gang.Dialect = "none"

// CommandAnnotation keeps, on the job, the shell-quoted command line that made it.
const CommandAnnotation = "gangctl.dev/command"

// Role is what is wished for one replica type of a TFJob.
type Role struct {
	Type     kubeflowv1.ReplicaType
	Replicas int32
	Image    string
	// GPUs is the count per member.
	GPUs int64
	// CPU and Memory, per member, become requests and equal limits; nil sets neither.
	CPU, Memory *resource.Quantity
}

// Spec is everything a job is made from besides its preset.
type Spec struct {
	Name, Namespace string
	// Roles in the order in which their members are shown. A role with no replicas is left out of the job.
	Roles []Role
	// GPUResource is the extended resource that Role.GPUs counts.
	GPUResource corev1.ResourceName

	// Command is the argv of every member, exactly as the program shall see it; empty leaves the image's entrypoint.
	Command []string
	// Env holds literal values, exactly as the program shall see them.
	Env            []corev1.EnvVar
	WorkingDir     string
	PriorityClass  string
	RestartPolicy  kubeflowv1.RestartPolicy
	CleanPodPolicy kubeflowv1.CleanPodPolicy
	// Scheduler is the schedulerName of every member; empty leaves the cluster's default.
	Scheduler string

	// Dialect is how the gang is declared.
	Dialect gang.Dialect
	// MinAvailable is how many members must start together, from 1 to all.
	MinAvailable int32

	// Labels and Annotations go on the job and on its pods.
	Labels, Annotations map[string]string
	// CommandLine is kept in CommandAnnotation; empty keeps none.
	CommandLine string
}

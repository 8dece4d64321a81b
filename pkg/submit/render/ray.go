package render

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// rayJob is a RayJob (ray.io/v1) with the fields that users set: its module has the operator in it.
type rayJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              rayJobSpec `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (j *rayJob) DeepCopyObject() runtime.Object {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(j)
	if err != nil {
		panic(err) // every field of it is one of JSON
	}
	c := &rayJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, c); err != nil {
		panic(err)
	}
	return c
}

type rayJobSpec struct {
	Suspend                  bool                    `json:"suspend,omitempty"`
	Entrypoint               string                  `json:"entrypoint,omitempty"`
	EntrypointNumCPUs        float64                 `json:"entrypointNumCpus,omitempty"`
	EntrypointNumGPUs        float64                 `json:"entrypointNumGpus,omitempty"`
	EntrypointResources      string                  `json:"entrypointResources,omitempty"`
	RuntimeEnvYAML           string                  `json:"runtimeEnvYAML,omitempty"`
	JobID                    string                  `json:"jobId,omitempty"`
	Metadata                 map[string]string       `json:"metadata,omitempty"`
	SubmissionMode           string                  `json:"submissionMode,omitempty"`
	SubmitterPodTemplate     *corev1.PodTemplateSpec `json:"submitterPodTemplate,omitempty"`
	ActiveDeadlineSeconds    *int64                  `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit             *int32                  `json:"backoffLimit,omitempty"`
	ShutdownAfterJobFinishes bool                    `json:"shutdownAfterJobFinishes,omitempty"`
	TTLSecondsAfterFinished  *int32                  `json:"ttlSecondsAfterFinished,omitempty"`
	RayClusterSpec           rayClusterSpec          `json:"rayClusterSpec"`
}

type rayClusterSpec struct {
	RayVersion             string            `json:"rayVersion,omitempty"`
	HeadServiceAnnotations map[string]string `json:"headServiceAnnotations,omitempty"`
	HeadGroupSpec          rayGroup          `json:"headGroupSpec"`
	WorkerGroupSpecs       []rayGroup        `json:"workerGroupSpecs,omitempty"`
}

// rayGroup is the head, or a group of workers.
type rayGroup struct {
	GroupName      string                 `json:"groupName,omitempty"`
	Replicas       *int32                 `json:"replicas,omitempty"`
	MinReplicas    *int32                 `json:"minReplicas,omitempty"`
	MaxReplicas    *int32                 `json:"maxReplicas,omitempty"`
	NumOfHosts     int32                  `json:"numOfHosts,omitempty"`
	RayStartParams map[string]string      `json:"rayStartParams,omitempty"`
	Template       corev1.PodTemplateSpec `json:"template"`
}

// RayWorkers is the role, and the group, of the workers of a RayJob that is written here.
const RayWorkers = "worker"

// rayContainer is the container in which the operator starts Ray.
const rayContainer = "ray"

// RayJob writes RayJobs (ray.io/v1): a RayCluster of a head and one group of workers, and the entrypoint that runs on it. The operator
// starts Ray in the members, and submits the command when all of them are there.
func RayJob() Kind {
	job := &rayJob{}
	return Kind{
		job: job, main: rayContainer, submitted: true,
		Sets: func(Spec) []string {
			return []string{"RAY_CLUSTER_NAME", "RAY_IP", "FQ_RAY_IP", "RAY_PORT", "RAY_ADDRESS", "KUBERAY_GEN_RAY_START_CMD"}
		},
		overlay: func(s Spec) (*overlaid, error) { return overlayRay(job, s) },
	}
}

// overlayRay merges a spec into a RayJob.
func overlayRay(job *rayJob, s Spec) (*overlaid, error) {
	if len(s.Pod.Command) > 0 {
		job.Spec.Entrypoint = shell.Join(s.Pod.Command...)
	}
	if l := s.Lifetime; l.Limit != nil {
		limit := min(*l.Limit, math.MaxInt32)
		job.Spec.ActiveDeadlineSeconds = &limit
	}
	if s.Lifetime.Retries != nil {
		job.Spec.BackoffLimit = s.Lifetime.Retries
	}
	if s.Lifetime.TTL != nil {
		job.Spec.TTLSecondsAfterFinished = s.Lifetime.TTL
	}
	cluster := &job.Spec.RayClusterSpec
	l := &overlaid{}
	for _, role := range s.Roles {
		group := &cluster.HeadGroupSpec
		if role.Name != ray.Head {
			i := slices.IndexFunc(cluster.WorkerGroupSpecs, func(g rayGroup) bool { return g.GroupName == role.Name })
			if i < 0 {
				return nil, fmt.Errorf("preset: no group %s in spec.rayClusterSpec.workerGroupSpecs", role.Name)
			}
			group = &cluster.WorkerGroupSpecs[i]
			group.Replicas, group.MinReplicas, group.MaxReplicas = &role.Replicas, &role.Replicas, &role.Replicas
		}
		if s.RestartPolicy != "" {
			group.Template.Spec.RestartPolicy = corev1.RestartPolicy(s.RestartPolicy)
		}
		l.roles = append(l.roles, placed{role, &group.Template})
	}
	return l, nil
}

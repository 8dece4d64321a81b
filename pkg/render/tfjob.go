package render

import (
	"fmt"
	"maps"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// Objects are what one submit creates, in the order of creation.
type Objects struct {
	Job *kubeflowv1.TFJob
	// PodGroup is nil in the dialects that need no object.
	PodGroup *spv1alpha1.PodGroup
}

// TFJob lays the spec over a preset, a TFJob in YAML. It fails if the preset is not one, or lacks a role of the spec.
func TFJob(preset []byte, s Spec) (*Objects, error) {
	job := &kubeflowv1.TFJob{}
	if err := yaml.UnmarshalStrict(preset, job); err != nil {
		return nil, fmt.Errorf("preset: %w", err)
	}
	job.Name, job.Namespace = s.Name, s.Namespace
	decorate(&job.ObjectMeta, s)
	if s.CommandLine != "" {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, CommandAnnotation, s.CommandLine)
	}
	job.Spec.RunPolicy.CleanPodPolicy = &s.CleanPodPolicy

	wanted := map[kubeflowv1.ReplicaType]bool{}
	for _, role := range s.Roles {
		if role.Replicas == 0 {
			continue
		}
		wanted[role.Type] = true
		replica, ok := job.Spec.TFReplicaSpecs[role.Type]
		if !ok {
			return nil, fmt.Errorf("preset: no role %s in spec.tfReplicaSpecs", role.Type)
		}
		if err := overlay(replica, role, s); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(job.Spec.TFReplicaSpecs, func(t kubeflowv1.ReplicaType, _ *kubeflowv1.ReplicaSpec) bool { return !wanted[t] })

	objects := &Objects{Job: job}
	if s.Dialect == NoGang {
		return objects, nil
	}
	minResources := gangResources(job, s.MinAvailable)
	// Set in every dialect, so that an operator that manages gangs itself comes to the same numbers.
	policy := &kubeflowv1.SchedulingPolicy{MinAvailable: &s.MinAvailable, PriorityClass: s.PriorityClass}
	if len(minResources) > 0 {
		policy.MinResources = (*map[corev1.ResourceName]resource.Quantity)(&minResources)
	}
	job.Spec.RunPolicy.SchedulingPolicy = policy
	if s.Dialect == gang.SchedulerPlugins {
		objects.PodGroup = podGroup(s, minResources)
	}
	return objects, nil
}

func overlay(replica *kubeflowv1.ReplicaSpec, role Role, s Spec) error {
	replica.Replicas = &role.Replicas
	replica.RestartPolicy = s.RestartPolicy
	pod := &replica.Template
	decorate(&pod.ObjectMeta, s)
	switch s.Dialect {
	case gang.SchedulerPlugins:
		schedulerplugins.Mark(&pod.ObjectMeta, s.Name)
	case gang.Labels:
		labels.Mark(&pod.ObjectMeta, s.Name, s.MinAvailable)
	case NoGang:
	default:
		return fmt.Errorf("a gang cannot be declared in dialect %q", s.Dialect)
	}
	pod.Spec.SchedulerName = s.Scheduler
	if s.PriorityClass != "" {
		pod.Spec.PriorityClassName = s.PriorityClass
	}
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == kubeflowv1.TFJobDefaultContainerName })
	if i < 0 {
		return fmt.Errorf("preset: role %s has no container named %s", role.Type, kubeflowv1.TFJobDefaultContainerName)
	}
	fill(&pod.Spec.Containers[i], role, s)
	return nil
}

func fill(c *corev1.Container, role Role, s Spec) {
	c.Image = role.Image
	if s.WorkingDir != "" {
		c.WorkingDir = s.WorkingDir
	}
	for _, word := range s.Command {
		c.Command = append(c.Command, literal(word))
	}
	for _, env := range s.Env {
		c.Env = append(c.Env, corev1.EnvVar{Name: env.Name, Value: literal(env.Value)})
	}
	c.Resources = resources(role, s.GPUResource)
}

// decorate adds the labels and annotations of the command line to those of the preset.
func decorate(meta *metav1.ObjectMeta, s Spec) {
	for key, value := range s.Labels {
		metav1.SetMetaDataLabel(meta, key, value)
	}
	for key, value := range s.Annotations {
		metav1.SetMetaDataAnnotation(meta, key, value)
	}
}

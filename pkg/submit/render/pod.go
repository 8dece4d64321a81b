package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fillPod lays what is wished for a role over the pod template that the preset has for it: everything that goes into a pod,
// whatever the kind of the job, goes in here. main is the container that does the work; if the preset has none of that name,
// it is an error, else it is returned. The marks of the gang are not a matter of this function.
func fillPod(template *corev1.PodTemplateSpec, main string, role Role, s Spec) (*corev1.Container, error) {
	decorate(&template.ObjectMeta, s)
	pod := &template.Spec
	pod.SchedulerName = s.Pod.Scheduler
	if s.Pod.PriorityClass != "" {
		pod.PriorityClassName = s.Pod.PriorityClass
	}
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == main })
	if i < 0 {
		return nil, fmt.Errorf("preset: role %s has no container named %s", role.Name, main)
	}
	fillContainer(&pod.Containers[i], role, s)
	fillRest(template, s)
	mount(pod, &pod.Containers[i], s.Pod.Mounts)
	if s.Pod.Code != nil {
		clone(pod, i, *s.Pod.Code)
	}
	settle(template, s)
	return &pod.Containers[i], nil
}

// fillRest lays what is no matter of a container over a pod.
func fillRest(template *corev1.PodTemplateSpec, s Spec) {
	pod := &template.Spec
	for _, name := range s.Pod.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if s.Pod.ServiceAccount != "" {
		pod.ServiceAccountName = s.Pod.ServiceAccount
	}
	if s.Pod.HostNetwork {
		pod.HostNetwork = true
		pod.DNSPolicy = corev1.DNSClusterFirstWithHostNet // or members would not find each other by name
	}
}

// fillContainer lays it over the container that does the work.
func fillContainer(c *corev1.Container, role Role, s Spec) {
	if role.Image != "" {
		c.Image = role.Image
	}
	if s.Pod.PullPolicy != "" {
		c.ImagePullPolicy = s.Pod.PullPolicy
	}
	if s.Pod.WorkingDir != "" {
		c.WorkingDir = s.Pod.WorkingDir
	}
	if len(s.Pod.Command) > 0 { // in place of all that the preset has
		c.Command, c.Args = nil, nil
	}
	for _, word := range s.Pod.Command {
		c.Command = append(c.Command, literal(word))
	}
	for _, env := range s.Pod.Env {
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == env.Name })
		c.Env = append(c.Env, corev1.EnvVar{Name: env.Name, Value: literal(env.Value)})
	}
	c.EnvFrom = append(c.EnvFrom, s.Pod.EnvFrom...)
	if s.Pod.LockMemory {
		lockMemory(c)
	}
	c.Resources = resources(c.Resources, role, s.Pod.GPUResource)
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

// lockMemory adds the capability to those that the preset has.
func lockMemory(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	if c.SecurityContext.Capabilities == nil {
		c.SecurityContext.Capabilities = &corev1.Capabilities{}
	}
	add := &c.SecurityContext.Capabilities.Add
	if !slices.Contains(*add, "IPC_LOCK") {
		*add = append(*add, "IPC_LOCK")
	}
}

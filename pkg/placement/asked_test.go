package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// It is a shortcut: whatever a pod is like, it must say what Request says.
func TestAskedIsRequest(t *testing.T) {
	ask := func(pairs ...string) corev1.Container {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list}}
	}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := ask("cpu", "300m")
	sidecar.RestartPolicy = &always
	amount := ask("cpu", "4").Resources
	pods := map[string]corev1.PodSpec{
		"one":          {Containers: []corev1.Container{ask("cpu", "1500m", "memory", "1Gi")}},
		"nothing":      {Containers: []corev1.Container{ask()}},
		"two, one gpu": {Containers: []corev1.Container{ask("cpu", "1", "nvidia.com/gpu", "2"), ask("cpu", "100m")}},
		"below a unit": {Containers: []corev1.Container{ask("cpu", "500u"), ask("cpu", "500u")}},
		"init":         {InitContainers: []corev1.Container{ask("cpu", "8")}, Containers: []corev1.Container{ask("cpu", "1")}},
		"sidecar":      {InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{ask("cpu", "1")}},
		"overhead":     {Overhead: corev1.ResourceList{"cpu": resource.MustParse("250m")}, Containers: []corev1.Container{ask("cpu", "1")}},
		"of the pod":   {Resources: &amount, Containers: []corev1.Container{ask("cpu", "1")}},
	}
	for name, spec := range pods {
		pod := &corev1.Pod{Spec: spec}
		for _, of := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"} {
			if got, want := Asked(pod, of), Amount(of, Request(pod)[of]); got != want {
				t.Errorf("%s: %d of %s, want %d", name, got, of, want)
			}
		}
		if got := Asked(pod, corev1.ResourcePods); got != 1 {
			t.Errorf("%s: %d of a node's places for pods, want 1", name, got)
		}
	}
}

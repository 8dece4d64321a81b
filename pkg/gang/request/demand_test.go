package request

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestOf(t *testing.T) {
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: list("cpu", "8", "memory", "1Gi")}}},
		Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "2")}},
			{Resources: corev1.ResourceRequirements{Limits: list("amd.com/gpu", "1")}},
		},
	}
	got := Of(spec)
	for name, want := range list("cpu", "8", "memory", "4Gi", "nvidia.com/gpu", "2", "amd.com/gpu", "1") {
		if q := got[name]; q.Cmp(want) != 0 {
			t.Errorf("%s: got %s, want %s", name, q.String(), want.String())
		}
	}
	if GPUs(got) != 3 {
		t.Errorf("GPUs: got %d, want 3", GPUs(got))
	}
	if _, ok := spec.Containers[1].Resources.Requests["amd.com/gpu"]; ok {
		t.Error("the argument was changed")
	}
}

func TestIsGPU(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "gpu.intel.com/i915": true,
		"example.com/vGPU": true, "gpu": false, "cpu": false, "rdma/hca": false} {
		if IsGPU(name) != want {
			t.Errorf("%s: got %v", name, !want)
		}
	}
}

func TestDevice(t *testing.T) {
	one := resource.MustParse("1")
	for want, list := range map[corev1.ResourceName]corev1.ResourceList{
		"nvidia.com/gpu": {"cpu": one, "a.com/rdma": one, "nvidia.com/gpu": one},
		"google.com/tpu": {"google.com/tpu": one},
		"":               {"cpu": one, "nvidia.com/gpu": resource.MustParse("0")},
	} {
		if got := Device(list); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

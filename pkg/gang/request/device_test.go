package request

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestByClaims(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Overhead: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2"), "cpu": resource.MustParse("1")}}}
	if gpus, cpu := ByClaims(pod, "nvidia.com/gpu"), ByClaims(pod, "cpu"); gpus != 2 || cpu != 0 {
		t.Errorf("%d GPUs and %d of cpu are had by claims", gpus, cpu)
	}
	if rest := Overhead(pod); len(rest) != 1 || rest.Cpu().IsZero() {
		t.Errorf("the RuntimeClass has %v", rest)
	}
}

func TestIsGPU(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "gpu.intel.com/i915": true,
		"example.com/vGPU": true, "volcano.sh/vgpu-number": true, "volcano.sh/vgpu-memory": false, "volcano.sh/vgpu-cores": false, "nvidia.com/gpumem-percentage": false,
		"gpu": false, "cpu": false, "rdma/hca": false} {
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

// Devices are those of the accelerator, and a limit of a template stands for the request.
func TestDevices(t *testing.T) {
	for name, tt := range map[string]struct {
		resources corev1.ResourceRequirements
		want      int64
	}{
		"none":                  {corev1.ResourceRequirements{Requests: list("cpu", "8")}, 0},
		"limits":                {corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "4", "rdma/hca", "1")}, 4},
		"requests":              {corev1.ResourceRequirements{Requests: list("nvidia.com/gpu", "4"), Limits: list("cpu", "1")}, 4},
		"another accelerator":   {corev1.ResourceRequirements{Limits: list("google.com/tpu", "2")}, 2},
		"the request, if given": {corev1.ResourceRequirements{Requests: list("nvidia.com/gpu", "1"), Limits: list("nvidia.com/gpu", "2")}, 1},
	} {
		before := tt.resources.DeepCopy()
		if got := Devices(OfContainer(tt.resources)); got != tt.want || !equality.Semantic.DeepEqual(*before, tt.resources) {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

// Whole devices and whole pages: the API takes no part of either.
func TestIsWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		resource  corev1.ResourceName
		amount    string
		huge, yes bool
	}{
		"devices":            {"rdma/hca", "2", false, true},
		"half a device":      {"rdma/hca", "500m", false, false},
		"less than none":     {"rdma/hca", "-1", false, false},
		"pages":              {"hugepages-1Gi", "4Gi", true, true},
		"half a page":        {"hugepages-1Gi", "1536Mi", true, false},
		"small pages":        {"hugepages-2Mi", "6Mi", true, true},
		"no size of a page":  {"hugepages-big", "6Mi", false, true},
		"a negative size":    {"hugepages--2Mi", "6Mi", false, true},
		"not as it is named": {"hugepages-1024Mi", "1Gi", false, true},
	} {
		if IsHugePages(tt.resource) != tt.huge || IsWhole(tt.resource, resource.MustParse(tt.amount)) != tt.yes {
			t.Errorf("%s: huge pages %t", name, IsHugePages(tt.resource))
		}
	}
}

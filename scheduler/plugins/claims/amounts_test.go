package claims

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A namespace that once had a gigabyte of huge pages may not have a thousand GPUs claimed for it: each resource counts by itself.
func TestAmountsAreOfEachResource(t *testing.T) {
	pod := func(name corev1.ResourceName, amount string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{name: resource.MustParse(amount)},
		}}}}}
	}
	pages, gpus := AmountsOf(pod("hugepages-2Mi", "1Gi")), AmountsOf(pod("nvidia.com/gpu", "8"))
	peak := Amounts{}.AtLeast(pages).AtLeast(gpus)
	for name, c := range map[string]struct {
		sum  Amounts
		want bool
	}{
		"the GPUs that it had":           {gpus, true},
		"more GPUs":                      {Amounts{}.Plus(gpus, 2), false},
		"what it had, given back":        {gpus.Plus(gpus, 1).Plus(gpus, -1), true},
		"pages, and a pod too many":      {pages.Plus(gpus, 1), false},
		"a resource that it had none of": {AmountsOf(pod("example.com/fpga", "1")), false},
	} {
		if got := c.sum.Within(peak); got != c.want {
			t.Errorf("%s: within %v, want %v", name, got, c.want)
		}
	}
	if left := gpus.Plus(gpus, -1); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

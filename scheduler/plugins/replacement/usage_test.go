package replacement

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
	pages, gpus := amountsOf(pod("hugepages-2Mi", "1Gi")), amountsOf(pod("nvidia.com/gpu", "8"))
	peak := amounts{}.atLeast(pages).atLeast(gpus)
	for name, c := range map[string]struct {
		sum  amounts
		want bool
	}{
		"the GPUs that it had":           {gpus, true},
		"more GPUs":                      {amounts{}.plus(gpus, 2), false},
		"what it had, given back":        {gpus.plus(gpus, 1).plus(gpus, -1), true},
		"pages, and a pod too many":      {pages.plus(gpus, 1), false},
		"a resource that it had none of": {amountsOf(pod("example.com/fpga", "1")), false},
	} {
		if got := c.sum.within(peak); got != c.want {
			t.Errorf("%s: within %v, want %v", name, got, c.want)
		}
	}
	if left := gpus.plus(gpus, -1); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

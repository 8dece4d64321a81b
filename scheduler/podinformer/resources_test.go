package podinformer

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

func requesting(list corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}}
}

// A pod of tens of thousands of resources is read as one of a few, which no node has room for, and keeps the cpu that it is charged for.
func TestTrimResources(t *testing.T) {
	many := func(amount string) corev1.ResourceList {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "hugepages-2Mi": resource.MustParse("4Mi")}
		for i := range 20_000 {
			list[corev1.ResourceName(fmt.Sprintf("a/r%05d", i))] = resource.MustParse(amount)
		}
		return list
	}
	for name, c := range map[string]struct {
		containers, init []corev1.Container
		requests, limits int // how many are left in all
		marked           bool
	}{
		"a usual pod":    {containers: []corev1.Container{requesting(corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("8")})}, requests: 2, limits: 2},
		"none of many":   {containers: []corev1.Container{requesting(many("0"))}, requests: 2, limits: 2},
		"many":           {containers: []corev1.Container{requesting(many("1"))}, requests: maxResources + 1, limits: maxResources, marked: true},
		"many elsewhere": {containers: []corev1.Container{{}, requesting(many("1"))}, requests: maxResources + 1, limits: maxResources, marked: true},
		"many first":     {containers: []corev1.Container{{}}, init: []corev1.Container{requesting(many("1"))}, requests: maxResources + 1, limits: maxResources, marked: true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: c.containers, InitContainers: c.init}}
		if _, err := trim(pod); err != nil {
			t.Fatal(err)
		}
		requests, limits := 0, 0
		for _, container := range append(pod.Spec.Containers, pod.Spec.InitContainers...) {
			requests += len(container.Resources.Requests)
			limits += len(container.Resources.Limits)
		}
		of := request.Of(pod)
		if _, marked := of[TooManyResources]; requests != c.requests || limits != c.limits || marked != c.marked {
			t.Errorf("%s: %d requests and %d limits are read, marked %t, want %d, %d, %t", name, requests, limits, marked, c.requests, c.limits, c.marked)
		}
		if of.Cpu().Value() != 2 {
			t.Errorf("%s: %s cpu", name, of.Cpu())
		}
	}
}

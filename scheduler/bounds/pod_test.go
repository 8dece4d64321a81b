package bounds

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

func requesting(list corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}}
}

// A pod of tens of thousands of resources is read as one of a few, which no node has room for, and keeps the cpu that it is charged for.
func TestBoundResources(t *testing.T) {
	many := func(amount string) corev1.ResourceList {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "hugepages-2Mi": resource.MustParse("4Mi")}
		for i := range 20_000 {
			list[corev1.ResourceName(fmt.Sprintf("a/r%05d", i))] = resource.MustParse(amount)
		}
		return list
	}
	all := requesting(many("1"))
	few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")} // as many as are read
	for i := range maxResources - 1 {
		few[corev1.ResourceName(fmt.Sprintf("a/r%05d", i))] = resource.MustParse("1")
	}
	for name, c := range map[string]struct {
		containers, init []corev1.Container
		pod              *corev1.ResourceRequirements
		requests, limits int // how many are left in all
		marked           bool
	}{
		"a usual pod":     {containers: []corev1.Container{requesting(corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("8")})}, requests: 2, limits: 2},
		"few, twice":      {containers: []corev1.Container{requesting(few), requesting(few)}, requests: 2 * maxResources, limits: 2 * maxResources},
		"none of many":    {containers: []corev1.Container{requesting(many("0"))}, requests: 2, limits: 2},
		"many":            {containers: []corev1.Container{requesting(many("1"))}, requests: 2, limits: 1, marked: true},
		"many elsewhere":  {containers: []corev1.Container{{}, requesting(many("1"))}, requests: 2, limits: 1, marked: true},
		"many first":      {containers: []corev1.Container{{}}, init: []corev1.Container{requesting(many("1"))}, requests: 2, limits: 1, marked: true},
		"many of the pod": {containers: []corev1.Container{{}}, pod: &all.Resources, requests: 2, limits: 1, marked: true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: c.containers, InitContainers: c.init, Resources: c.pod}}
		Pod(&pod.Spec)
		requests, limits := 0, 0
		if c.pod != nil {
			requests, limits = len(c.pod.Requests), len(c.pod.Limits)
		}
		for _, container := range append(pod.Spec.Containers, pod.Spec.InitContainers...) {
			requests += len(container.Resources.Requests)
			limits += len(container.Resources.Limits)
		}
		of := request.Of(pod)
		if _, marked := of[TooManyRequirements]; requests != c.requests || limits != c.limits || marked != c.marked {
			t.Errorf("%s: %d requests and %d limits are read, marked %t, want %d, %d, %t", name, requests, limits, marked, c.requests, c.limits, c.marked)
		}
		if of.Cpu().Value() != 2 {
			t.Errorf("%s: %s cpu", name, of.Cpu())
		}
	}
}

// A pod with thousands of terms is read as one without any, which gets no node. One with as many as users write is read as it is.
func TestBoundTerms(t *testing.T) {
	values := func(n int) []string { return slices.Repeat([]string{"v"}, n) }
	selector := func(n int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: values(n)}}}
	}
	for name, write := range map[string]func(spec *corev1.PodSpec, n int){
		"node selector": func(s *corev1.PodSpec, n int) {
			s.NodeSelector = map[string]string{}
			for i := range n {
				s.NodeSelector[fmt.Sprint(i)] = ""
			}
		},
		"tolerations": func(s *corev1.PodSpec, n int) { s.Tolerations = make([]corev1.Toleration, n) },
		"spread": func(s *corev1.PodSpec, n int) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{LabelSelector: selector(n)}}
		},
		"volumes": func(s *corev1.PodSpec, n int) { s.Volumes = make([]corev1.Volume, n) },
		"claims":  func(s *corev1.PodSpec, n int) { s.ResourceClaims = make([]corev1.PodResourceClaim, n) },
		"ports":   func(s *corev1.PodSpec, n int) { s.Containers[0].Ports = make([]corev1.ContainerPort, n) },
		"ports of an init container": func(s *corev1.PodSpec, n int) {
			s.InitContainers = []corev1.Container{{Ports: make([]corev1.ContainerPort, n)}}
		},
		"node affinity": func(s *corev1.PodSpec, n int) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Values: values(n)}}}}}}}
		},
		"preferred nodes": func(s *corev1.PodSpec, n int) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: make([]corev1.PreferredSchedulingTerm, n)}}
		},
		"affinity": func(s *corev1.PodSpec, n int) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: values(n)}}}}
		},
		"anti-affinity": func(s *corev1.PodSpec, n int) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: corev1.PodAffinityTerm{NamespaceSelector: selector(n)}}}}}
		},
	} {
		for _, n := range []int{100, maxTerms + 1} {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
			write(&pod.Spec, n)
			written := pod.Spec.DeepCopy()
			Pod(&pod.Spec)
			_, marked := request.Of(pod)[TooManyRequirements]
			if many := n > maxTerms; marked != many || !many && !reflect.DeepEqual(&pod.Spec, written) || many && terms(&pod.Spec) > 2 {
				t.Errorf("%s, %d: marked %t, %d terms are read", name, n, marked, terms(&pod.Spec))
			}
		}
	}
}

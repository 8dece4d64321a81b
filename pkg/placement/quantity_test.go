package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQuantityAndAmount(t *testing.T) {
	for _, tc := range []struct {
		name   corev1.ResourceName
		amount int64
		text   string
	}{
		{corev1.ResourceCPU, 250, "250m"}, {corev1.ResourceCPU, 2000, "2"}, {corev1.ResourceMemory, 1 << 30, "1Gi"},
		{corev1.ResourceEphemeralStorage, 3 << 20, "3Mi"}, {gpu, 8, "8"}, {corev1.ResourcePods, 110, "110"}, {gpu, -2, "-2"},
	} {
		q := Quantity(tc.name, tc.amount)
		if q.String() != tc.text {
			t.Errorf("%d of %s is %s, want %s", tc.amount, tc.name, q.String(), tc.text)
		}
		if back := Amount(tc.name, q); back != tc.amount {
			t.Errorf("%s of %s is %d, want %d", tc.text, tc.name, back, tc.amount)
		}
	}
	// Kubernetes rounds up what is no whole number of its unit.
	if got := Amount(gpu, resource.MustParse("1500m")); got != 2 {
		t.Errorf("1.5 devices are %d, want 2", got)
	}
}

func TestRequest(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	before := func(name string, policy *corev1.ContainerRestartPolicy, asks corev1.ResourceList) podOption {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: policy, Resources: corev1.ResourceRequirements{Requests: asks}})
		}
	}
	overhead := func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu", "250m") }
	together := func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", 7)} }
	for name, tc := range map[string]struct {
		options []podOption
		cpu     int64
	}{
		"a container":                        {nil, 2000},
		"a small one before it":              {[]podOption{before("i", nil, amounts("cpu", 1))}, 2000},
		"a large one before it":              {[]podOption{before("i", nil, amounts("cpu", 5))}, 5000},
		"one beside it":                      {[]podOption{before("s", &always, amounts("cpu", 1))}, 3000},
		"one beside it while another begins": {[]podOption{before("s", &always, amounts("cpu", 1)), before("i", nil, amounts("cpu", 5))}, 6000},
		"one before the one beside it":       {[]podOption{before("i", nil, amounts("cpu", 5)), before("s", &always, amounts("cpu", 1))}, 5000},
		"what its runtime takes":             {[]podOption{overhead}, 2250},
		"for the pod as a whole":             {[]podOption{together}, 7000},
		"as a whole, with its runtime":       {[]podOption{together, overhead}, 7250},
	} {
		t.Run(name, func(t *testing.T) {
			q := Request(aPod("w", amounts("cpu", 2), tc.options...))[corev1.ResourceCPU]
			if q.MilliValue() != tc.cpu {
				t.Errorf("%s, want %dm", q.String(), tc.cpu)
			}
		})
	}
}

package request

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestOfTemplate(t *testing.T) {
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: list("cpu", "8", "memory", "1Gi")}}},
		Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "2")}},
			{Resources: corev1.ResourceRequirements{Limits: list("amd.com/gpu", "1")}},
		},
	}
	got := OfTemplate(spec)
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

// What a pod states as a whole is completed by the API server: by what its containers request, then by its limits.
func TestPodLevelOfTemplate(t *testing.T) {
	containers := []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("cpu", "4", "nvidia.com/gpu", "1")}}, {Resources: corev1.ResourceRequirements{Limits: list("cpu", "1")}}}
	for _, c := range []struct {
		name string
		own  *corev1.ResourceRequirements
		want corev1.ResourceList
	}{
		{"nothing", nil, list("cpu", "3", "nvidia.com/gpu", "1")},
		{"limits", &corev1.ResourceRequirements{Limits: list("cpu", "64", "memory", "256Gi")}, list("cpu", "3", "memory", "256Gi", "nvidia.com/gpu", "1")},
		{"a request of its own", &corev1.ResourceRequirements{Requests: list("memory", "1Gi"), Limits: list("memory", "2Gi", "hugepages-2Mi", "4Mi")}, list("cpu", "3", "memory", "1Gi", "hugepages-2Mi", "4Mi", "nvidia.com/gpu", "1")},
	} {
		stated := c.own.DeepCopy()
		got := OfTemplate(corev1.PodSpec{Containers: containers, Resources: c.own})
		if !equality.Semantic.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if !equality.Semantic.DeepEqual(stated, c.own) {
			t.Errorf("%s: the argument was changed", c.name)
		}
	}
}

// OfResource is a shortcut: whatever a pod is like, it must return what Of returns.
func TestOfResourceIsOf(t *testing.T) {
	container := func(pairs ...string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
	}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("cpu", "300m")
	sidecar.RestartPolicy = &always
	amount := container("cpu", "4").Resources
	pods := map[string]corev1.PodSpec{
		"one":          {Containers: []corev1.Container{container("cpu", "1500m", "memory", "1Gi")}},
		"nothing":      {Containers: []corev1.Container{container()}},
		"two, one gpu": {Containers: []corev1.Container{container("cpu", "1", "nvidia.com/gpu", "2"), container("cpu", "100m")}},
		"below a unit": {Containers: []corev1.Container{container("cpu", "500u"), container("cpu", "500u")}},
		"init":         {InitContainers: []corev1.Container{container("cpu", "8")}, Containers: []corev1.Container{container("cpu", "1")}},
		"sidecar":      {InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("cpu", "1")}},
		"overhead":     {Overhead: list("cpu", "250m"), Containers: []corev1.Container{container("cpu", "1")}},
		"of the pod":   {Resources: &amount, Containers: []corev1.Container{container("cpu", "1")}},
	}
	for name, spec := range pods {
		pod := &corev1.Pod{Spec: spec}
		for _, of := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"} {
			if got, want := OfResource(pod, of), Amount(of, Of(pod)[of]); got != want {
				t.Errorf("%s: %d of %s, want %d", name, got, of, want)
			}
		}
		if got := OfResource(pod, corev1.ResourcePods); got != 1 {
			t.Errorf("%s: %d of a node's pod slots, want 1", name, got)
		}
	}
}

// A pod is charged the larger of what it requests and what it has, while its node has not yet changed that, and what it has where its node cannot.
func TestResizedPod(t *testing.T) {
	infeasible := []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	has := func(container string, pairs ...string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: container, AllocatedResources: list(pairs...), Resources: &corev1.ResourceRequirements{Requests: list(pairs...)}}}
	}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   int64
	}{
		"as requested":          {corev1.PodStatus{ContainerStatuses: has("main", "memory", "64Gi")}, 64 << 30},
		"not stated":            {corev1.PodStatus{ContainerStatuses: has("main")}, 64 << 30},
		"made smaller":          {corev1.PodStatus{ContainerStatuses: has("main", "memory", "700Gi")}, 700 << 30},
		"made larger":           {corev1.PodStatus{ContainerStatuses: has("main", "memory", "16Gi")}, 64 << 30},
		"larger than its node":  {corev1.PodStatus{ContainerStatuses: has("main", "memory", "16Gi"), Conditions: infeasible}, 16 << 30},
		"of a container before": {corev1.PodStatus{ContainerStatuses: has("other", "memory", "700Gi")}, 64 << 30},
		"another resource":      {corev1.PodStatus{ContainerStatuses: has("main", "cpu", "8")}, 64 << 30},
	} {
		pod := &corev1.Pod{Status: tt.status}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list("memory", "64Gi", "cpu", "4")}}}
		if got := OfResource(pod, corev1.ResourceMemory); got != tt.want || got != Amount(corev1.ResourceMemory, OfRunning(pod)[corev1.ResourceMemory]) {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestQuantityAndAmount(t *testing.T) {
	for _, tc := range []struct {
		name   corev1.ResourceName
		amount int64
		text   string
	}{
		{corev1.ResourceCPU, 250, "250m"}, {corev1.ResourceCPU, 2000, "2"}, {corev1.ResourceCPU, 5500, "5500m"}, {corev1.ResourceMemory, 1 << 30, "1Gi"},
		{corev1.ResourceEphemeralStorage, 3 << 20, "3Mi"}, {"nvidia.com/gpu", 8, "8"}, {corev1.ResourcePods, 110, "110"}, {"nvidia.com/gpu", -2, "-2"},
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
	if got := Amount("nvidia.com/gpu", resource.MustParse("1500m")); got != 2 {
		t.Errorf("1.5 devices are %d, want 2", got)
	}
}

func TestOfPod(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	type option = func(*corev1.PodSpec)
	before := func(name string, policy *corev1.ContainerRestartPolicy, cpu string) option {
		return func(s *corev1.PodSpec) {
			s.InitContainers = append(s.InitContainers, corev1.Container{Name: name, RestartPolicy: policy, Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu)}})
		}
	}
	overhead := func(s *corev1.PodSpec) { s.Overhead = list("cpu", "250m") }
	together := func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "7")} }
	for name, tc := range map[string]struct {
		options []option
		cpu     int64
	}{
		"a container":                    {nil, 2000},
		"a small one before it":          {[]option{before("i", nil, "1")}, 2000},
		"a large one before it":          {[]option{before("i", nil, "5")}, 5000},
		"a sidecar":                      {[]option{before("s", &always, "1")}, 3000},
		"a sidecar while another begins": {[]option{before("s", &always, "1"), before("i", nil, "5")}, 6000},
		"one before the sidecar":         {[]option{before("i", nil, "5"), before("s", &always, "1")}, 5000},
		"what its runtime takes":         {[]option{overhead}, 2250},
		"for the pod as a whole":         {[]option{together}, 7000},
		"as a whole, with its runtime":   {[]option{together, overhead}, 7250},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "2")}}}}}
			for _, set := range tc.options {
				set(&pod.Spec)
			}
			q := Of(pod)[corev1.ResourceCPU]
			if q.MilliValue() != tc.cpu {
				t.Errorf("%s, want %dm", q.String(), tc.cpu)
			}
		})
	}
}

// Users may write thousands of devices of which they request none.
func TestOfLeavesOutNoDevices(t *testing.T) {
	got := Of(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("a/x", "0", "a/y", "1", "cpu", "0")}}}}})
	_, none := got["a/x"]
	_, one := got["a/y"]
	if _, cpu := got["cpu"]; none || !one || !cpu {
		t.Errorf("got %v", got)
	}
}

func TestWholeUnits(t *testing.T) {
	const mi = 1 << 20
	tests := []struct {
		name             corev1.ResourceName
		amount, down, up int64
	}{
		{corev1.ResourceMemory, 5*mi + 1, 5 * mi, 6 * mi}, {corev1.ResourceMemory, 5 * mi, 5 * mi, 5 * mi}, {corev1.ResourceMemory, 1, mi, mi},
		{corev1.ResourceCPU, 2667, 2667, 2667}, {"nvidia.com/gpu", 3, 3, 3}, {"hugepages-2Mi", 5 * mi, 4 * mi, 6 * mi}, {"hugepages-x", 5, 5, 5},
	}
	for _, tt := range tests {
		if down, up := Down(tt.name, tt.amount), Up(tt.name, tt.amount); down != tt.down || up != tt.up {
			t.Errorf("%s of %d: got %d and %d, want %d and %d", tt.name, tt.amount, down, up, tt.down, tt.up)
		}
	}
}

package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
)

func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: clustertest.List("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "2"), Limits: clustertest.List("memory", "16Gi", "nvidia.com/gpu", "2")}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func text(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return strings.Join(parts, " ")
}

func TestCharge(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"containers", func(*corev1.Pod) {}, "count/pods=1 cpu=4 limits.memory=16Gi limits.nvidia.com/gpu=2 memory=8Gi pods=1 requests.cpu=4 requests.memory=8Gi requests.nvidia.com/gpu=2"},
		{"a larger init container", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "6")}}}
		}, "count/pods=1 cpu=6 limits.memory=16Gi limits.nvidia.com/gpu=2 memory=8Gi pods=1 requests.cpu=6 requests.memory=8Gi requests.nvidia.com/gpu=2"},
		{"a side-car", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "1")}}}
		}, "count/pods=1 cpu=5 limits.memory=16Gi limits.nvidia.com/gpu=2 memory=8Gi pods=1 requests.cpu=5 requests.memory=8Gi requests.nvidia.com/gpu=2"},
		{"overhead", func(p *corev1.Pod) { p.Spec.Overhead = clustertest.List("memory", "1Gi") },
			"count/pods=1 cpu=4 limits.memory=17Gi limits.nvidia.com/gpu=2 memory=9Gi pods=1 requests.cpu=4 requests.memory=9Gi requests.nvidia.com/gpu=2"},
		{"nothing", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, "count/pods=1 pods=1"},
	}
	for _, tt := range tests {
		if got := text(Charge(pod(tt.change))); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestApplies(t *testing.T) {
	deadline := int64(60)
	class := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
	}
	none := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }
	device := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", "2"), Limits: clustertest.List("nvidia.com/gpu", "2")}
	}
	capped := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: clustertest.List("memory", "1Gi")}
	}
	limited := func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &deadline }
	crossing := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"other"}}}}}}
	}
	inside := func(p *corev1.Pod) { p.Spec.Affinity = clustertest.Apart("gang") }
	scope := func(scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: scopes}
	}
	selector := func(op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}}}}
	}
	tests := []struct {
		name   string
		spec   corev1.ResourceQuotaSpec
		change func(*corev1.Pod)
		want   bool
	}{
		{"no scope", scope(), class(""), true},
		{"terminating", scope(corev1.ResourceQuotaScopeTerminating), limited, true},
		{"terminating, and has no end", scope(corev1.ResourceQuotaScopeTerminating), class(""), false},
		{"not terminating", scope(corev1.ResourceQuotaScopeNotTerminating), class(""), true},
		{"not terminating, and has an end", scope(corev1.ResourceQuotaScopeNotTerminating), limited, false},
		{"best effort", scope(corev1.ResourceQuotaScopeBestEffort), none, true},
		{"best effort, and requests something", scope(corev1.ResourceQuotaScopeBestEffort), class(""), false},
		{"best effort, and requests a GPU alone", scope(corev1.ResourceQuotaScopeBestEffort), device, true},
		{"not best effort, and requests a GPU alone", scope(corev1.ResourceQuotaScopeNotBestEffort), device, false},
		{"not best effort, and has a limit alone", scope(corev1.ResourceQuotaScopeNotBestEffort), capped, true},
		{"not best effort", scope(corev1.ResourceQuotaScopeNotBestEffort), class(""), true},
		{"both must hold", scope(corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating), class(""), false},
		{"affinity to other namespaces", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), crossing, true},
		{"affinity inside its own", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), inside, false},
		{"no affinity", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), class(""), false},
		{"a scope of volumes", scope(corev1.ResourceQuotaScopeVolumeAttributesClass), class(""), false},
		{"a class", selector(corev1.ScopeSelectorOpIn, "high", "low"), class("low"), true},
		{"another class", selector(corev1.ScopeSelectorOpIn, "high"), class("low"), false},
		{"not a class", selector(corev1.ScopeSelectorOpNotIn, "high"), class("low"), true},
		{"any class", selector(corev1.ScopeSelectorOpExists), class(""), false},
		{"no class", selector(corev1.ScopeSelectorOpDoesNotExist), class(""), true},
	}
	for _, tt := range tests {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: tt.spec}
		if got := Applies(q, pod(tt.change)); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
		if q.Namespace = "other"; Applies(q, pod(tt.change)) {
			t.Errorf("%s: applies in another namespace", tt.name)
		}
	}
}

func TestHard(t *testing.T) {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: clustertest.List("pods", "5")}}
	if got := text(Hard(q)); got != "pods=5" {
		t.Errorf("before the controller saw it: got %s", got)
	}
	if q.Status.Hard = clustertest.List("pods", "4"); text(Hard(q)) != "pods=4" {
		t.Errorf("in force: got %s", text(Hard(q)))
	}
}

func TestResource(t *testing.T) {
	for key, want := range map[corev1.ResourceName]corev1.ResourceName{
		"requests.nvidia.com/gpu": "nvidia.com/gpu", "limits.memory": "memory", "cpu": "cpu", "count/pods": "pods", "count/services": "services", "requests.ephemeral-storage": "ephemeral-storage",
	} {
		if got := Resource(key); got != want {
			t.Errorf("%s: got %s", key, got)
		}
	}
}

// A pod that has ended counts as an object until it is deleted, and for nothing else.
func TestHeld(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		if got := text(Held(pod(func(p *corev1.Pod) { p.Status.Phase = phase }))); got != "count/pods=1" {
			t.Errorf("%s: got %s", phase, got)
		}
	}
	if got, want := text(Held(pod())), text(Charge(pod())); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	q.Status.Used = clustertest.List("count/pods", "3", "pods", "2")
	done := pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	if got := text(Release([]*corev1.ResourceQuota{q}, []*corev1.Pod{done})[0].Status.Used); got != "count/pods=2 pods=2" {
		t.Errorf("got %s", got)
	}
}

// What ends is given back; what has ended was, and the quota that was passed in stays as it is.
func TestRelease(t *testing.T) {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	q.Status.Used = clustertest.List("requests.nvidia.com/gpu", "6", "pods", "3")
	other := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}}
	other.Status.Used = clustertest.List("pods", "3")
	done := pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	got := Release([]*corev1.ResourceQuota{q, other}, []*corev1.Pod{pod(), pod(), done})
	if text(got[0].Status.Used) != "pods=1 requests.nvidia.com/gpu=2" {
		t.Errorf("got %s", text(got[0].Status.Used))
	}
	if got[1] != other || text(q.Status.Used) != "pods=3 requests.nvidia.com/gpu=6" {
		t.Error("something else was changed")
	}
	if taken := Take(got, []*corev1.Pod{pod(), pod(), done}); text(taken[0].Status.Used) != text(q.Status.Used) || text(got[0].Status.Used) != "pods=1 requests.nvidia.com/gpu=2" {
		t.Errorf("taken again: got %s", text(taken[0].Status.Used))
	}
	if used := got[0].Status.Used["pods"]; used.Cmp(resource.MustParse("1")) != 0 {
		t.Errorf("got %s", used.String())
	}
}

// Scopes read as people write them.
func TestScopes(t *testing.T) {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}, ScopeSelector: &corev1.ScopeSelector{
		MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"gold", "silver"}},
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpNotIn, Values: []string{"low"}},
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpDoesNotExist},
			{ScopeName: corev1.ResourceQuotaScopeCrossNamespacePodAffinity, Operator: corev1.ScopeSelectorOpExists},
		}}}}
	want := []string{"Terminating", "PriorityClass in gold or silver", "PriorityClass other than low", "no PriorityClass", "CrossNamespacePodAffinity"}
	if diff := cmp.Diff(want, Scopes(q)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A quota of cpu or memory has each container state it, unless the pod states it as a whole.
func TestUnstatedIn(t *testing.T) {
	limits := clustertest.List("limits.cpu", "8", "limits.memory", "64Gi", "requests.cpu", "8", "requests.nvidia.com/gpu", "8", "pods", "8")
	bare := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	}
	whole := func(p *corev1.Pod) {
		bare(p)
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: clustertest.List("cpu", "1")}
	}
	tests := []struct {
		name   string
		hard   corev1.ResourceList
		scopes []corev1.ResourceQuotaScope
		change func(*corev1.Pod)
		want   string
	}{
		{"a limit", limits, nil, func(*corev1.Pod) {}, "limits.cpu:main"},
		{"an init container", limits, nil, bare, "limits.cpu:main,init limits.memory:init requests.cpu:init"},
		{"short for requests", clustertest.List("memory", "1Gi"), nil, bare, "memory:init"},
		{"the pod as a whole", limits, nil, whole, ""},
		{"none that has to be stated", clustertest.List("requests.nvidia.com/gpu", "8", "requests.ephemeral-storage", "1Gi"), nil, bare, ""},
		{"pods of another scope", limits, []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}, bare, ""},
	}
	for _, tt := range tests {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: tt.hard, Scopes: tt.scopes}}
		var got []string
		for _, u := range UnstatedIn(q, pod(tt.change)) {
			got = append(got, string(u.Key)+":"+strings.Join(u.Containers, ","))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, got, tt.want)
		}
	}
}

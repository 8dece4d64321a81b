package view

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// A pod that does not exist yet has what its PriorityClass gives it, as admission would write it.
func TestPriorityOfVirtualPods(t *testing.T) {
	never, lower := corev1.PreemptNever, corev1.PreemptLowerPriority
	w := New(&snapshot.Snapshot{PriorityClasses: []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "eval"}, Value: 1000, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Value: 7, GlobalDefault: true},
	}})
	for _, c := range []struct {
		class    string
		own      *corev1.PreemptionPolicy
		name     string
		priority int32
		policy   *corev1.PreemptionPolicy
	}{{"eval", nil, "eval", 1000, &never}, {"eval", &lower, "eval", 1000, &lower}, {"", nil, "default", 7, nil}} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: c.class, PreemptionPolicy: c.own}}
		w.fillIn(pod)
		if got := pod.Spec; got.PriorityClassName != c.name || got.Priority == nil || *got.Priority != c.priority || (got.PreemptionPolicy == nil) != (c.policy == nil) || c.policy != nil && *got.PreemptionPolicy != *c.policy {
			t.Errorf("class %q: %+v", c.class, got)
		}
	}
}

// A pod that does not exist yet has the ports of its node that the API server would give it, and requests what its limits as a whole are.
func TestDefaultsOfVirtualPods(t *testing.T) {
	port := func(own, host int32) []corev1.ContainerPort {
		return []corev1.ContainerPort{{ContainerPort: own, HostPort: host}}
	}
	w := New(&snapshot.Snapshot{})
	for _, host := range []bool{true, false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: host, InitContainers: []corev1.Container{{Ports: port(1, 0)}}, Containers: []corev1.Container{{Ports: port(2, 0)}, {Ports: port(3, 3)}}}}
		pod.Spec.Resources = &corev1.ResourceRequirements{Limits: clustertest.List("cpu", "64")}
		w.fillIn(pod)
		got := []int32{pod.Spec.InitContainers[0].Ports[0].HostPort, pod.Spec.Containers[0].Ports[0].HostPort, pod.Spec.Containers[1].Ports[0].HostPort}
		if want := map[bool][]int32{true: {1, 2, 3}, false: {0, 0, 3}}[host]; !slices.Equal(got, want) {
			t.Errorf("in the host's network %v: got %v, want %v", host, got, want)
		}
		if cpu := pod.Spec.Resources.Requests.Cpu(); cpu.Value() != 64 {
			t.Errorf("got %s cpu", cpu)
		}
	}
}

// The selectors of a pod that does not exist yet have the keys that stand beside them in its template, as the API server would merge them; the template stays as it is.
func TestLabelKeysOfVirtualPods(t *testing.T) {
	w, job := New(&snapshot.Snapshot{}), map[string]string{"job": "llama", "role": "worker"}
	term := func(selector *metav1.LabelSelector) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{LabelSelector: selector, MatchLabelKeys: []string{"role", "absent"}, MismatchLabelKeys: []string{"job"}, TopologyKey: corev1.LabelHostname}
	}
	all := []corev1.PodAffinityTerm{term(&metav1.LabelSelector{}), term(nil)}
	weighted := []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: all[0]}, {PodAffinityTerm: all[1]}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: job}, Spec: corev1.PodSpec{Affinity: &corev1.Affinity{
		PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: all, PreferredDuringSchedulingIgnoredDuringExecution: weighted},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: all, PreferredDuringSchedulingIgnoredDuringExecution: weighted},
	}}}
	got := w.OfTemplate("team", template).Spec.Affinity
	terms := slices.Concat(got.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, got.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, weighted := range slices.Concat(got.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, got.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) {
		terms = append(terms, weighted.PodAffinityTerm)
	}
	for i, term := range terms {
		text, want := metav1.FormatLabelSelector(term.LabelSelector), "job notin (llama),role in (worker)"
		if i%2 == 1 {
			want = "<none>" // no selector selects no pods
		}
		if text != want || (term.LabelSelector == nil) != (i%2 == 1) {
			t.Errorf("term %d: got %s", i, text)
		}
	}
	if len(all[0].LabelSelector.MatchExpressions) != 0 {
		t.Error("the template has changed")
	}
}

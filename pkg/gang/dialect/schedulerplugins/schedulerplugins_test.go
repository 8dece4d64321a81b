package schedulerplugins

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

func TestMarkIsReadBack(t *testing.T) {
	pod := &corev1.Pod{}
	if name, ok := NameOf(pod); ok {
		t.Errorf("NameOf(unmarked) = %q, want none", name)
	}
	SetGroup(&pod.ObjectMeta, "llama")
	if name, ok := NameOf(pod); !ok || name != "llama" {
		t.Errorf("NameOf = %q, %v, want llama", name, ok)
	}
	if got := pod.Labels["scheduling.x-k8s.io/pod-group"]; got != "llama" {
		t.Errorf("label on the wire = %q, want llama", got)
	}
}

func TestPhase(t *testing.T) {
	tests := []struct {
		name   string
		min    int32
		counts Counts
		want   spv1alpha1.PodGroupPhase
	}{
		{"nothing bound", 3, Counts{}, spv1alpha1.PodGroupPending},
		{"all bound, not running yet", 3, Counts{Bound: 3}, spv1alpha1.PodGroupScheduling},
		{"bound, part of it running", 3, Counts{Bound: 3, Running: 2}, spv1alpha1.PodGroupScheduling},
		{"minimum runs", 3, Counts{Bound: 4, Running: 3}, spv1alpha1.PodGroupRunning},
		{"below the minimum", 3, Counts{Bound: 2, Running: 2}, spv1alpha1.PodGroupUnknown},
		{"one ended, the rest runs", 3, Counts{Bound: 2, Running: 2, Succeeded: 1}, spv1alpha1.PodGroupRunning},
		{"all ended well", 3, Counts{Succeeded: 3}, spv1alpha1.PodGroupFinished},
		{"one failed and is not replaced", 3, Counts{Bound: 2, Running: 2, Failed: 1}, spv1alpha1.PodGroupFailed},
		{"one failed, another wants its place", 3, Counts{Bound: 2, Running: 2, Failed: 1, Open: 1}, spv1alpha1.PodGroupUnknown},
		{"one failed in an earlier attempt", 3, Counts{Failed: 1, Open: 3}, spv1alpha1.PodGroupPending},
		{"one failed, too few want places", 3, Counts{Failed: 1, Open: 2}, spv1alpha1.PodGroupFailed},
		{"one failed and is replaced", 3, Counts{Bound: 3, Running: 3, Failed: 1}, spv1alpha1.PodGroupRunning},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Phase(tt.min, tt.counts); got != tt.want {
				t.Errorf("phase = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCountPods(t *testing.T) {
	pod := func(phase corev1.PodPhase, node string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	leaves := func(pod *corev1.Pod) *corev1.Pod { pod.DeletionTimestamp = &metav1.Time{}; return pod }
	pods := []*corev1.Pod{
		pod(corev1.PodPending, ""), pod(corev1.PodPending, "n1"), pod(corev1.PodRunning, "n1"),
		pod(corev1.PodSucceeded, "n1"), pod(corev1.PodFailed, "n2"),
		leaves(pod(corev1.PodPending, "")), leaves(pod(corev1.PodRunning, "n1")), leaves(pod(corev1.PodSucceeded, "n1")), leaves(pod(corev1.PodFailed, "n1")),
	}
	if got, want := CountPods(pods), (Counts{Bound: 3, Running: 2, Succeeded: 2, Failed: 2, Open: 1}); got != want {
		t.Errorf("CountPods = %+v, want %+v", got, want)
	}
	if got, want := CountPods(Staying(pods)), (Counts{Bound: 2, Running: 1, Succeeded: 2, Failed: 2, Open: 1}); got != want {
		t.Errorf("CountPods of those that stay = %+v, want %+v", got, want)
	}
}

func TestDecode(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "research", "name": "llama"},
		"spec":     map[string]any{"minMember": int64(5)},
	}}
	group, err := Decode(u)
	if err != nil || group.Spec.MinMember != 5 || group.Name != "llama" {
		t.Errorf("Decode = %+v, %v", group, err)
	}
	u.Object["spec"] = map[string]any{"minMember": "five"}
	if _, err := Decode(u); err == nil {
		t.Error("Decode of minMember \"five\" succeeded, want an error that names the object")
	}
}

// FuzzNameOf checks that no label map makes reading fail, and that what SetGroup
// wrote is what NameOf reads, whatever else is on the pod.
func FuzzNameOf(f *testing.F) {
	f.Add("app", "x", "llama")
	f.Fuzz(func(t *testing.T, key, value, name string) {
		meta := metav1.ObjectMeta{Labels: map[string]string{key: value}}
		SetGroup(&meta, name)
		got, ok := NameOf(&meta)
		if got != name || ok != (name != "") {
			t.Errorf("NameOf = %q, %v after SetGroup(%q)", got, ok, name)
		}
	})
}

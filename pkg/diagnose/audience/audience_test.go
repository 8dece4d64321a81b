package audience

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func pod(name corev1.ResourceName, amount string) *corev1.Pod {
	list := corev1.ResourceList{name: resource.MustParse(amount)}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}}}
}

func TestNames(t *testing.T) {
	gpus := Requests([]*corev1.Pod{pod("nvidia.com/gpu", "8"), pod("nvidia.com/gpu", "8"), pod("cpu", "4")})
	for name, tt := range map[string]struct {
		reader      Reader
		thing       Thing
		name, title string
	}{
		"its own":              {Hidden.Reader("a"), New("gang", "a", "x"), "a/x", "gang a/x"},
		"of another":           {Hidden.Reader("a"), New("gang", "b", "x"), "a gang of another namespace", "a gang of another namespace"},
		"of another, GPUs":     {Hidden.Reader("a"), New("gang", "b", "x").Sized(gpus, 0), "a gang of another namespace (16 GPUs, priority 0)", "a gang of another namespace (16 GPUs, priority 0)"},
		"of another, cpu":      {Hidden.Reader("a"), New("pod", "b", "x").Sized(Requests([]*corev1.Pod{pod("cpu", "4")}), 7), "a pod of another namespace (4 cpu, priority 7)", "a pod of another namespace (4 cpu, priority 7)"},
		"of another, nothing":  {Hidden.Reader("a"), New("MPIJob", "b", "x").Sized(nil, -1), "an MPIJob of another namespace (priority -1)", "an MPIJob of another namespace (priority -1)"},
		"names are allowed":    {Named.Reader("a"), New("gang", "b", "x").Sized(gpus, 0), "b/x", "gang b/x"},
		"the caller":           {Reader{}, New("gang", "b", "x").Sized(gpus, 0), "b/x", "gang b/x"},
		"no namespace, no one": {Hidden.Reader(""), New("gang", "b", "x"), "a gang of another namespace", "a gang of another namespace"},
	} {
		if got := tt.reader.Name(tt.thing); got != tt.name {
			t.Errorf("%s: name %q, want %q", name, got, tt.name)
		}
		if got := tt.reader.Title(tt.thing); got != tt.title {
			t.Errorf("%s: title %q, want %q", name, got, tt.title)
		}
	}
	if !Hidden.Reader("a").Sees("") {
		t.Error("cluster-wide objects are hidden")
	}
}

func TestTexts(t *testing.T) {
	text := Write("b", func(r Reader) string { return "kept for " + r.Title(New("gang", "b", "x")) })
	for reader, want := range map[Reader]string{
		Hidden.Reader("b"): "kept for gang b/x", Named.Reader("a"): "kept for gang b/x", {}: "kept for gang b/x",
		Hidden.Reader("a"): "kept for a gang of another namespace",
	} {
		if got := text.For(reader); got != want {
			t.Errorf("%+v reads %q, want %q", reader, got, want)
		}
	}
	if got := Plain("no room").For(Hidden.Reader("a")); got != "no room" {
		t.Errorf("got %q", got)
	}
	if text != Write("b", func(r Reader) string { return "kept for " + r.Title(New("gang", "b", "x")) }) {
		t.Error("equal texts differ")
	}
}

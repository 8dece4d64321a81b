package suggest

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	tests := []struct {
		typed string
		names []string
		want  string
	}{
		{"h1oo", []string{"a100", "h100"}, "h100"},
		{"visoin", []string{"default", "vision"}, "vision"},
		{"gnag", []string{"default-scheduler", "gang"}, "gang"},
		{"nvidia.com/gpus", []string{"amd.com/gpu", "nvidia.com/gpu"}, "nvidia.com/gpu"},
		{"gang", []string{"gang"}, ""},
		{"llama", []string{"resnet"}, ""},
		{"x", nil, ""},
		{"resnt", []string{"resnet", "resnets"}, "resnet"},
		{"scheduling.x-k8s.io/podgroup", []string{"pod-group-name", "scheduling.x-k8s.io/pod-group"}, "scheduling.x-k8s.io/pod-group"},
		{"b200", []string{"a100", "h100"}, ""}, // another model is no slip
		{"run-3", []string{"run-4"}, "run-4"},
		{"node-12", []string{"node-21", "node-98"}, "node-21"},
		{"ab", []string{"ba", "ac"}, ""}, // which are other names, not slips
		{"abc", []string{"abd", "xyc"}, "abd"},
		{"abc", []string{"axy"}, ""},
		{"abcdefghi", []string{"abcdef"}, "abcdef"},
		{"abcdefghij", []string{"abcdef"}, ""},
		{"same", []string{"sbme", "some", "same"}, "sbme"}, // of equals the first by name, whatever the order
		{"same", []string{"same", "some", "sbme"}, "sbme"},
	}
	for _, tt := range tests {
		if got := Nearest(tt.typed, tt.names); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.typed, got, tt.want)
		}
	}
}

// The nearest comes first, then at most two others that have the name in them, or begin like it.
func TestSimilar(t *testing.T) {
	for typed, want := range map[string][]string{
		"llama":    {"llama-70b", "llama-7b", "llama-test"},
		"lama":     {"llama", "llama-70b", "llama-7b"},
		"lla":      {"llama", "llama-70b", "llama-7b"},
		"mistral7": {"mistral"},
		"zephyr":   nil,
	} {
		names := []string{"mistral", "llama-test", "llama-7b", "llama-70b", "resnet"}
		if typed != "llama" {
			names = append(names, "llama")
		}
		if got := Similar(typed, names); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
}

package near

import "testing"

func TestNearest(t *testing.T) {
	tests := []struct {
		word  string
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
	}
	for _, tt := range tests {
		if got := Nearest(tt.word, tt.names); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.word, got, tt.want)
		}
	}
}

package e2e

import (
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/sandbox/demo"
)

// follows sees what members print until the job ends, and how it ended in the exit code.
func follows(t *testing.T, stage *demo.Stage, _ dynamic.Interface) {
	for _, tt := range []struct {
		name  string
		flags []string
		code  int
	}{
		{"ends", nil, 0},
		{"fails", []string{"--annotation", "sandbox.gangctl.dev/exit-code=1", "--restart-policy", "Never"}, 9},
	} {
		words := append([]string{"submit", "tf", tt.name, "--image", "tf-benchmarks", "--workers", "2", "--gpus", "1", "--follow", "--annotation", "sandbox.gangctl.dev/run-for=3s"}, tt.flags...)
		stdout, stderr, code := gangctl(t, stage, append(words, "--", "true")...)
		if code != tt.code || !strings.Contains(stdout, "[worker-0] ") || !strings.Contains(stdout, "[worker-1] ") {
			t.Errorf("%s: exit code %d, want %d\n%s%s", tt.name, code, tt.code, stdout, stderr)
		}
		gone(t, stage, tt.name)
	}
}

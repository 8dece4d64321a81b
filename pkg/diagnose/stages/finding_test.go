package stages_test

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// Sentences are on one line each, whatever others wrote into them.
func TestSentences(t *testing.T) {
	line := func(format string, args ...any) string {
		return stage.Found(answer.JobInvalid, format, args...).Message
	}
	tests := []struct{ got, want string }{
		{line("a\n\n  b\r\nc  "), "a b c"}, {line("  indented\n"), "  indented"}, {line("%d%%", 5), "5%"},
		{imagename.Base("reg.example.com:5000/kubeflow/training-operator:v1@sha256:0"), "training-operator"}, {imagename.Base("busybox"), "busybox"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

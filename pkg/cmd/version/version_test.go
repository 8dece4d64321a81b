package version

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

func TestVersion(t *testing.T) {
	full := version.Info{Version: "v1.2.3", Commit: "abc", GoVersion: "go1.26", Platform: "linux/amd64", Kubernetes: "v0.37.1"}
	tests := []struct {
		args string
		info version.Info
		want string
	}{
		{"", full, "gangctl v1.2.3\n  commit:            abc\n  go:                go1.26\n  platform:          linux/amd64\n  kubernetes client: v0.37.1\n"},
		{"", version.Info{Version: "dev", GoVersion: "go1.26"}, "gangctl dev\n  go:                go1.26\n"},
		{"-o short", full, "v1.2.3\n"},
		{"-o yaml", full, "commit: abc\ngoVersion: go1.26\nkubernetes: v0.37.1\nplatform: linux/amd64\nversion: v1.2.3\n"},
		{"-o json", version.Info{Version: "dev"}, "{\n    \"version\": \"dev\",\n    \"goVersion\": \"\",\n    \"platform\": \"\"\n}\n"},
	}
	for _, tt := range tests {
		io, _, out, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
		cmd := NewCommand(&cmdutil.Factory{IO: io, Version: tt.info}, nil)
		cmd.SetArgs(strings.Fields(tt.args))
		if err := cmd.ExecuteContext(t.Context()); err != nil || out.String() != tt.want {
			t.Errorf("%q: got %v\n%s", tt.args, err, out)
		}
	}
}

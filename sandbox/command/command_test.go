package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// TestMain does what main does before it makes the commands.
func TestMain(m *testing.M) {
	pflag.CommandLine = pflag.NewFlagSet("gangctl-sandbox", pflag.ContinueOnError)
	os.Exit(m.Run())
}

func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Unix(0, 0)))
	root := NewRoot(Env{IO: io, Getenv: func(key string) string { return map[string]string{"HOME": t.TempDir()}[key] }})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func TestMistakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	other := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(other, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: prod, context: {cluster: c, user: u}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, args    string
		code          failure.Code
		message, hint string
	}{
		{"flag", "up --nope", 2, "unknown flag: --nope", "gangctl-sandbox up --help"},
		{"command", "upp", 2, `unknown command "upp"`, "--help"},
		{"node command", "node upp", 2, `unknown command "upp" of gangctl-sandbox node`, "--help"},
		{"quantity", "up --cpu=four", 2, `--cpu "four"`, ""},
		{"value", "up --fail-rate=2", 2, "--fail-rate 2", ""},
		{"empty data dir", "down --data-dir=", 2, "--data-dir must not be empty", ""},
		{"count", "node add --count=0 --data-dir=" + dir, 2, "--count 0", ""},
		{"negative GPUs", "node add --gpus=-1 --data-dir=" + dir, 2, "--gpus -1: must not be negative", ""},
		{"kubeconfig of other clusters", "up --data-dir=" + dir + " --kubeconfig=" + other, 1, "holds other things", "choose a file of its own"},
		{"unknown controller", "up --with=jobsets --data-dir=" + dir, 2, `--with "jobsets": there is no controller of that name`, "did you mean jobset? those that `make controllers` builds"},
		{"controllers that are not built", "up --with=jobset --controllers=" + dir + " --data-dir=" + dir, 1, "the program of the controller jobset: stat " + dir, "make controllers"},
		{"folder without controllers", "up --controllers=" + dir + " --data-dir=" + dir, 2, "--controllers " + dir + ": there are no controllers without --with", ""},
		{"nothing there", "status --data-dir=" + dir, 1, "there is no sandbox in " + dir, "gangctl-sandbox up"},
		{"nothing to change", "node add --data-dir=" + dir, 1, "no sandbox is ready in " + dir, "gangctl-sandbox up"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := execute(t, strings.Fields(tt.args)...)
			var f *failure.Error
			if !errors.As(err, &f) || f.Code != tt.code || !strings.Contains(f.Message, tt.message) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("got %v, %+v", err, f)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	out, _, err := execute(t, "up", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--node-file", "--operator-gang-scheduler", "--with string", "jobset, trainer, lws, ray, kueue", "sandbox.gangctl.dev/run-for", "restartPolicy"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	out, _, err = execute(t, "--help")
	if err != nil || strings.Contains(out, "supervise") {
		t.Errorf("shows what is not for users: %v\n%s", err, out)
	}
}

func TestDownOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, stderr, err := execute(t, "down", "--data-dir", dir); err != nil || !strings.Contains(stderr, "there is no sandbox in "+dir) {
		t.Errorf("%v %s", err, stderr)
	}
}

func TestParse(t *testing.T) {
	labels, err := parseLabels([]string{"a=b", "c="})
	if err != nil || labels["a"] != "b" || len(labels) != 2 {
		t.Errorf("got %v, %v", labels, err)
	}
	taints, err := parseTaints([]string{"k=v:NoExecute", "k:NoSchedule"})
	if err != nil || len(taints) != 2 || taints[0].Value != "v" || taints[1].Key != "k" {
		t.Errorf("got %v, %v", taints, err)
	}
	for _, bad := range []string{"k", "=v:NoSchedule", "k=v:never", ""} {
		if _, err := parseTaints([]string{bad}); err == nil {
			t.Errorf("taint %q is accepted", bad)
		}
	}
}

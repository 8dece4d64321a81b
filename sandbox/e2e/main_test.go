// Package e2e tests that a sandbox does what its commands promise: it starts,
// lives through a crash, is left without a trace, and behaves like a cluster.
//
// Each test has a sandbox of its own: it is about how one starts and ends. They
// run side by side, which sandboxes must bear anyway.
package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := sandboxtest.RemoveBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// bare are the flags of a control plane without anything that a test of the
// processes does not look at.
func bare(more ...string) []string {
	return append([]string{"--nodes=1", "--scheduler=none", "--operator=false"}, more...)
}

// processes lists those with a path in their command line, but not the tests.
func processes(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		t.Fatalf("list processes: %v", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--data-dir "+path) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// wantError runs a command that must fail with an exit code and these texts.
func wantError(t *testing.T, c *sandboxtest.Cluster, code int, want []string, command string, args ...string) {
	t.Helper()
	stdout, stderr, err := c.Run(command, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Errorf("%s %v: %v, want exit code %d\n%s%s", command, args, err, code, stdout, stderr)
	}
	for _, text := range want {
		if !strings.Contains(stderr, text) {
			t.Errorf("%s %v: standard error lacks %q:\n%s", command, args, text, stderr)
		}
	}
}

// Package prerequisite skips tests for want of what a machine may lack. In CI, which installs all of it, they fail instead: a test that is
// skipped there never runs.
package prerequisite

import (
	"os"
	"os/exec"
	"testing"
)

// CIEnv names the environment variable that .ci/run sets: every prerequisite is installed.
const CIEnv = "GANGCTL_CI"

// Missing ends a test whose prerequisite is not there, for the reason given: it is skipped, and fails in CI.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(CIEnv) != "" {
		t.Fatalf("%s, and %s is set", reason, CIEnv)
	}
	t.Skip(reason)
}

// Program returns the path of a program that a test runs. Without the program the test is skipped, and fails in CI.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name+" is not installed")
	}
	return path
}

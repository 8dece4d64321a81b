// Package e2e types what the documentation says, and completes command lines in real shells, on a sandbox.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gangctl/gangctl/sandbox/sandboxtest"
)

// programs are the paths of gangctl and gangctl-sandbox.
var programs struct{ gangctl, sandbox string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run takes the programs that the environment names, or builds them.
func run(m *testing.M) int {
	programs.gangctl, programs.sandbox = os.Getenv("GANGCTL_BIN"), os.Getenv("GANGCTL_SANDBOX_BIN")
	if programs.gangctl == "" || programs.sandbox == "" {
		dir, err := os.MkdirTemp("", "gangctl-howto-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-o", dir, "../../../cmd/gangctl", "../../../cmd/gangctl-sandbox")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build the programs:", err)
			return 1
		}
		programs.gangctl, programs.sandbox = filepath.Join(dir, "gangctl"), filepath.Join(dir, "gangctl-sandbox")
	}
	if err := os.Setenv(sandboxtest.BinaryEnv, programs.sandbox); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentation shares one sandbox among all that looks at what users are told.
func TestDocumentation(t *testing.T) {
	w := newWorld(t)
	t.Run("shells", func(t *testing.T) { shells(t, w) })
	t.Run("played pages", played)
	t.Run("documented lines", func(t *testing.T) { documented(t, w) })
}

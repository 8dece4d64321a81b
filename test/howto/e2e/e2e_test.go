// Package e2e types the documentation's command lines, and completes command lines in real shells, on a sandbox.
package e2e

import (
	"os"
	"testing"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// programs are the paths of gangctl and gangctl-sandbox.
var programs struct{ gangctl, sandbox string }

func TestMain(m *testing.M) {
	os.Exit(sandboxtest.Main(m, func(gangctl, sandbox string) { programs.gangctl, programs.sandbox = gangctl, sandbox }))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentation shares one sandbox among all that tests the documentation.
func TestDocumentation(t *testing.T) {
	w := newEnvironment(t)
	t.Run("played pages", func(t *testing.T) {
		t.Parallel() // they have sandboxes of their own, as their readers have
		played(t)
	})
	t.Run("on one sandbox", func(t *testing.T) {
		t.Parallel()
		t.Run("shells", func(t *testing.T) { shells(t, w) })
		t.Run("documented lines", func(t *testing.T) { documented(t, w) })
	})
}

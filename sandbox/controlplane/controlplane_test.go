package controlplane

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/sandbox/component"
)

// A component that is started by hand fails with the name of the command that
// starts it, instead of running without a parent.
func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{component.Etcd}, {component.Etcd, "--data-dir"}, {component.Etcd, "--help", "x"}} {
		if code := Run(args, strings.NewReader("")); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

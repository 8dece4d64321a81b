package component

import (
	"strings"
	"testing"
)

// A component that is started by hand says who starts it, instead of running
// without a parent.
func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{Etcd}, {Etcd, "--data-dir"}, {Etcd, "--help", "x"}} {
		if code := Run(args, strings.NewReader("")); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

func TestKnown(t *testing.T) {
	if !Known(GangScheduler) || Known("up") {
		t.Error("names of components are mixed up")
	}
}

package component

import "testing"

func TestKnown(t *testing.T) {
	if !Known(GangScheduler) || Known("up") {
		t.Error("names of components are mixed up")
	}
}

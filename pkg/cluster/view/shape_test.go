package view

import (
	"fmt"
	"testing"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// What gangs of one shape have in common is found out once; of any number of shapes, which users write, only so much is kept.
func TestShapesAreForgotten(t *testing.T) {
	w := New(&snapshot.Snapshot{})
	found := 0
	find := func(shape string) int {
		return OnceForShape(w, shape, "room", func() (int, bool) { found++; return found, true })
	}
	if find("a") != 1 || find("a") != 1 || find("") != 2 || find("") != 3 {
		t.Fatalf("found %d times", found)
	}
	if OnceForShape(w, "a", "fit", func() (int, bool) { return 7, false }) != 7 || OnceForShape(w, "a", "fit", func() (int, bool) { return 8, true }) != 8 {
		t.Error("what is not proven was kept")
	}
	for i := range 2 * knownRows {
		find(fmt.Sprint("shape ", i))
	}
	if n := len(w.shapes.known); n != knownRows || len(w.shapes.order) != n {
		t.Errorf("%d shapes are kept, %d in order", n, len(w.shapes.order))
	}
	if before := found; find("a") != before+1 {
		t.Error("the first is still known")
	}
}

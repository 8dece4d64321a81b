package replacement

import (
	"math"
	"testing"

	"github.com/gangctl/gangctl/internal/enginetest"
)

// A tenant may declare any minimum. A scheduler that starts infers places for at most as many members as the gang has pods.
func TestAnyMinimumInfersAPlaceAPod(t *testing.T) {
	w := newFixture(t)
	w.nodes = append(w.nodes, enginetest.Node("n3", 100))
	w.gangs, w.begun = gangA{required: math.MaxInt32, priority: 7}, false
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	claimed := 0
	for _, claims := range w.look() {
		claimed += len(claims)
	}
	if claimed != 2 {
		t.Errorf("%d places are claimed for a gang of two pods", claimed)
	}
}

package placement

import (
	"fmt"
	"testing"
)

// A label may have as many values as there are nodes: programs get those that most nodes have.
func TestSomeOfManyValues(t *testing.T) {
	values := map[string]int{"often": 7}
	for i := range 3 * mostHad {
		values[fmt.Sprintf("v%03d", i)] = 1
	}
	some := someOf(values)
	if len(some) != mostHad || some["often"] != 7 || some["v000"] != 1 {
		t.Errorf("%d values: %v", len(some), some)
	}
}

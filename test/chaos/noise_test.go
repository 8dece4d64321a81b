package chaos

import (
	"reflect"
	"testing"
)

func TestNoise(t *testing.T) {
	a, b, other := NewNoise(1), NewNoise(1), NewNoise(2)
	kinds, same := map[string]int{}, true
	for range 500 {
		w := a.Next()
		if !reflect.DeepEqual(w, b.Next()) {
			t.Fatal("a seed says something else the second time")
		}
		same = same && reflect.DeepEqual(w, other.Next())
		kinds[w.Name]++
		if !w.Delete && (len(w.Object.GetName()) > 63 || w.Object.GetName() == "") {
			t.Errorf("%s has the name %q", w.Name, w.Object.GetName())
		}
	}
	if same || len(kinds) != 9 {
		t.Errorf("two seeds are the same: %v; kinds %v", same, kinds)
	}
}

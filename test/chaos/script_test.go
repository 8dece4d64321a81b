package chaos

import "testing"

// A seed is a script, and every script has everything in it.
func TestScript(t *testing.T) {
	a, b, other := NewScript(1), NewScript(1), NewScript(2)
	seen := map[Kind]int{}
	differs := false
	for range 2000 {
		m := a.Next()
		if m != b.Next() {
			t.Fatal("one seed, two scripts")
		}
		differs = differs || m != other.Next()
		seen[m.Kind]++
		if m.Min < 1 || m.Min > m.Size || m.Count < 1 || m.For <= 0 || m.After <= 0 || m.CPU <= 0 {
			t.Fatalf("%+v", m)
		}
	}
	if !differs {
		t.Error("two seeds, one script")
	}
	for _, w := range weights {
		if seen[w.kind] < 5 {
			t.Errorf("%s happens %d times in 2000", w.kind, seen[w.kind])
		}
	}
}

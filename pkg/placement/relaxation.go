package placement

import "math/bits"

// OnlyBlocker returns the nodes that would take the pod if this one constraint did not count.
func (m Matrix) OnlyBlocker(c Constraint) []string { return m.Relaxed(c) }

// Relaxed returns the nodes that would take the pod if all these constraints did not count, and which reject it by every
// one of them: the nodes for which the set is exactly what has to go.
func (m Matrix) Relaxed(set ...Constraint) []string {
	want := m.maskOf(set...)
	if want == 0 || bits.OnesCount64(want) != len(set) {
		return nil
	}
	return m.names(func(mask uint64) bool { return mask == want })
}

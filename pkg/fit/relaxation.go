package fit

import (
	"cmp"
	"math/bits"
	"slices"
)

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

// Relaxation is a set of constraints without which some nodes would take the pod.
type Relaxation struct {
	// Constraints is the set, in the order of Matrix.Constraints.
	Constraints []Constraint
	// Nodes would take the pod if none of the set counted: those that reject it by the set or by a part of it.
	Nodes []string
}

// Relaxations returns the minimal sets of at most size constraints without which at least one more node takes the pod: no
// part of a set would do for that node. Smaller sets come first, then those that gain more nodes.
func (m Matrix) Relaxations(size int) []Relaxation {
	masks := map[uint64]bool{}
	for _, r := range m.Rows {
		if r.mask != 0 && bits.OnesCount64(r.mask) <= size {
			masks[r.mask] = true
		}
	}
	var out []Relaxation
	for mask := range masks {
		rel := Relaxation{Nodes: m.names(func(row uint64) bool { return row != 0 && row&^mask == 0 })}
		for i, c := range m.Constraints {
			if mask&(1<<i) != 0 {
				rel.Constraints = append(rel.Constraints, c)
			}
		}
		out = append(out, rel)
	}
	slices.SortFunc(out, func(a, b Relaxation) int {
		return cmp.Or(cmp.Compare(len(a.Constraints), len(b.Constraints)), cmp.Compare(len(b.Nodes), len(a.Nodes)),
			slices.CompareFunc(a.Constraints, b.Constraints, compareConstraints))
	})
	return out
}

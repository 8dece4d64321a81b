package placement

import "slices"

// pattern is how many members of each class a site takes together.
type pattern []int

// patterns returns the combinations of members that a site takes and to which no member can be added.
func (t *task) patterns(s *site) []pattern {
	var out []pattern
	counts := make(pattern, len(t.classes))
	free := slices.Clone(s.free)
	var fill func(i int)
	fill = func(i int) {
		if t.expired() {
			return
		}
		if i == len(t.classes) {
			if t.maximal(s, counts, free) {
				out = append(out, slices.Clone(counts))
			}
			return
		}
		k := &t.classes[i]
		fill(i + 1)
		for n := 1; n <= s.slots[i] && t.addable(s, counts, free, i); n++ {
			counts[i] = n
			k.take(free, 1)
			fill(i + 1)
		}
		k.take(free, -int64(counts[i]))
		counts[i] = 0
	}
	fill(0)
	return out
}

// addable tells whether one more member of class i fits beside the others.
func (t *task) addable(s *site, counts pattern, free []int64, i int) bool {
	if !s.ok[i] || counts[i] >= s.slots[i] {
		return false
	}
	if clash := s.clashes(i); clash != 0 {
		for j, n := range counts {
			if n > 0 && clash&(1<<j) != 0 {
				return false
			}
		}
	}
	for _, need := range t.classes[i].needs {
		if free[need.pos] < need.amount {
			return false
		}
	}
	return t.allocatable(s, counts, i)
}

func (t *task) maximal(s *site, counts pattern, free []int64) bool {
	for i := range counts {
		if t.addable(s, counts, free, i) {
			return false
		}
	}
	return true
}

// take charges n members of the class; a negative n gives them back.
func (k *class) take(free []int64, n int64) {
	for _, need := range k.needs {
		free[need.pos] -= need.amount * n
	}
}

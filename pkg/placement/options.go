package placement

import (
	"cmp"
	"slices"
)

// turns returns the classes that may be placed next.
func (s *seeker) turns() []int {
	var out []int
	for _, i := range s.order {
		if s.placed[i] < s.t.classes[i].count && s.closed&(1<<i) == 0 {
			out = append(out, i)
		}
	}
	return out
}

// hope tells whether the members that are not placed yet could still make the gang start.
func (s *seeker) hope() bool {
	most := slices.Clone(s.placed)
	for i := range most {
		if s.closed&(1<<i) == 0 {
			most[i] = s.t.classes[i].count
		}
	}
	return s.hopeless || s.t.enough(most)
}

func (s *seeker) follows(i int) int {
	if r := s.f.affinity[i]; r != nil && !r.match[i] {
		return 1
	}
	return 0
}

// options returns the sites that accept a member of class i next, best first, one of each that are alike.
func (s *seeker) options(i int) []int {
	type option struct{ at, ahead, waste int }
	var list []option
	for _, group := range s.groups {
		for _, at := range group {
			if s.accepts(at, i) {
				o := option{at: at, ahead: s.ahead(at, i)}
				if s.t.wastes(i, s.sites[at]) {
					o.waste = 1
				}
				list = append(list, o)
			}
			if s.used[at] == 0 {
				break // the rest of the group is like this one
			}
		}
	}
	slices.SortFunc(list, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.ahead, b.ahead), cmp.Compare(a.waste, b.waste), cmp.Compare(a.at, b.at))
	})
	out := make([]int, len(list))
	for n, o := range list {
		out[n] = o.at
	}
	return out
}

package preemption

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/placement"
)

// exact looks at every set of candidates up to a priority that may cost less than
// the best so far, if they are few, and notes whether it came to an end.
func (s *search) exact(limit int32) {
	var open []int
	for i, u := range s.units {
		if u.Priority <= limit {
			open = append(open, i)
		}
	}
	if len(open) > exactUnits {
		return
	}
	s.branch(open, make(set, len(s.units)), true)
	s.best.Cheapest = s.ctx.Err() == nil
}

// branch decides on the first of those who are open, having decided on others.
// More evicted makes the preemptor fit better and costs more, so a set is not
// looked into further once it is enough, or costs as much as the best.
func (s *search) branch(open []int, evicted set, grown bool) {
	if s.ctx.Err() != nil {
		return
	}
	if grown {
		cost := costOf(s.chosen(evicted), s.budgets)
		if cost.compareHarm(s.best.Cost) > 0 {
			return
		}
		if r := s.place(evicted, placement.Options{}); r.Fits() {
			s.consider(evicted, r)
			return
		}
		if cost.compareHarm(s.best.Cost) == 0 {
			return // one more is needed, and costs more
		}
	}
	if len(open) == 0 || !s.fits(s.with(evicted, open)) {
		return
	}
	i, rest := open[0], open[1:]
	u := s.units[i]
	s.branch(rest, evicted, false) // it is spared
	if whole, ok := s.whole[u.Gang]; u.Kind == Surplus && ok && evicted[whole] {
		return // it goes with the others
	}
	more := slices.Clone(evicted)
	more[i] = true
	if u.Kind == Surplus && !s.allowed(more, u.Gang) {
		return
	}
	s.branch(rest, more, true)
}

// with is a set and all who are open.
func (s *search) with(e set, open []int) set {
	all := slices.Clone(e)
	for _, i := range open {
		all[i] = true
	}
	return all
}

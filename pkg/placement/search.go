package placement

import (
	"cmp"
	"slices"
)

// search places members one after the other, each where the ones before it let it, until the gang is placed or every order
// and place was tried. hopeless says that the gang is known not to fit: then one try is enough, to have something to show.
func (t *task) search(sites []*site, hopeless bool) (best packing, exact bool) {
	best = t.nothing()
	if !hopeless {
		if p := t.tryDomains(sites); t.full(p.placed) {
			return p, true
		} else if t.better(p.placed, best.placed) {
			best = p
		}
	}
	s := newSeeker(t, sites, best, hopeless)
	s.visit()
	return s.best, !s.stopped
}

// seeker walks through the partial placements.
type seeker struct {
	*board
	best     packing
	hopeless bool
	stopped  bool // before everything was tried
	seen     map[string]bool
	groups   [][]int // sites that are alike as long as nothing is on them; the ones with members come first in their group
	order    []int   // the classes, in the order in which they are tried
	ordered  bool    // the order in which members are placed matters
	closed   uint64  // classes of which no more members are placed
	path     []step  // how the placement on the board came about
}

func newSeeker(t *task, sites []*site, best packing, hopeless bool) *seeker {
	s := &seeker{board: newBoard(t, sites), best: best, hopeless: hopeless, seen: map[string]bool{}}
	s.groups = s.alike()
	// Classes of which a node holds few come first, those that must follow others last, so that a first try does not get stuck.
	s.order = t.bySize(sites)
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.follows(a), s.follows(b)) })
	for i := range t.classes {
		s.ordered = s.ordered || s.f.affinity[i] != nil || len(s.f.spread[i]) > 0
	}
	return s
}

// visit goes on from the placement on the board. It returns true if there is nothing more to look for.
func (s *seeker) visit() bool {
	if s.t.expired() {
		s.stopped = true
		return true
	}
	key := s.key()
	if s.seen[key] {
		return false
	}
	s.seen[key] = true
	if s.t.better(s.placed, s.best.placed) {
		s.best = s.packing()
		if s.ordered {
			s.best.path = slices.Clone(s.path)
		}
	}
	if s.t.full(s.placed) {
		return true
	}
	if !s.hope() {
		return false
	}
	moved := false
	closed := s.closed
	for _, i := range s.turns() {
		for _, at := range s.options(i) {
			moved = true
			s.put(at, i, 1)
			s.path = append(s.path, step{s.sites[at], i})
			done := s.visit()
			s.path = s.path[:len(s.path)-1]
			s.put(at, i, -1)
			if done {
				return true
			}
		}
		if !s.ordered {
			// Every placement that has one more of this class was tried; go on with the others as if these were all.
			s.closed |= 1 << i
		}
	}
	s.closed = closed
	if !moved && (s.hopeless || s.t.enough(s.best.placed)) {
		s.stopped = !s.t.enough(s.best.placed)
		return true
	}
	return false
}

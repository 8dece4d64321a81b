package placement

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// search places members one after the other, each where the ones before it let it, until the gang is placed or every order and place was
// tried. hopeless means that the gang is known not to fit: then one try is enough, to have something to show.
func (t *task) search(candidates []*candidate, hopeless bool) (best packing, exact bool) {
	best = t.emptyPacking()
	if !hopeless {
		if p := t.tryDomains(candidates); t.full(p.placed) {
			return p, true
		} else if t.betterThan(p.placed, best.placed) {
			best = p
		}
	}
	s := newSearcher(t, candidates, best, hopeless)
	s.visit()
	return s.best, !s.stopped && (s.taken == nil || !s.taken.undecided)
}

// tryDomains looks for a placement of the whole gang inside one domain of a key that some member's affinity is about: a quick way
// to what the search would find late.
func (t *task) tryDomains(candidates []*candidate) packing {
	best := t.emptyPacking()
	tried := map[int]bool{}
	for _, r := range t.crossNode.affinity {
		if r == nil {
			continue
		}
		for _, key := range r.keys {
			if tried[key] {
				continue
			}
			tried[key] = true
			inside := make(map[int][]*candidate)
			for _, s := range candidates {
				if d := t.crossNode.domain[key][s.pos]; d >= 0 {
					inside[d] = append(inside[d], s)
				}
			}
			for d := range t.crossNode.domains[key] {
				if len(inside[d]) == 0 || t.countingBound(inside[d]) != nil {
					continue
				}
				s := newSearcher(t, inside[d], t.emptyPacking(), true)
				s.visit()
				if t.betterThan(s.best.placed, best.placed) {
					best = s.best
				}
				if t.full(best.placed) || t.overBudget {
					return best
				}
			}
		}
	}
	return best
}

// searcher walks through the partial placements.
type searcher struct {
	*partialPlacement
	best     packing
	hopeless bool
	stopped  bool // before everything was tried
	seen     map[string]bool
	groups   [][]int // candidates that are alike as long as nothing is on them; the ones with members come first in their group
	order    []int   // the roles, in the order in which they are tried
	ordered  bool    // the order in which members are placed matters
	closed   uint64  // roles of which no more members are placed
	path     []step  // how the placement came about
	taken    *takenDevices
}

// newSearcher starts with no member placed.
func newSearcher(t *task, candidates []*candidate, best packing, hopeless bool) *searcher {
	s := &searcher{partialPlacement: newPartialPlacement(t, candidates), best: best, hopeless: hopeless, seen: map[string]bool{}, taken: t.nothingTaken()}
	s.ordered = s.taken != nil
	s.groups = s.groupAlike()
	// Roles of which few fit on a node come first, those with affinity to others last, so that a first try does not get stuck.
	s.order = t.bySize(candidates)
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.followsOthers(a), s.followsOthers(b)) })
	for i := range t.roles {
		s.ordered = s.ordered || s.crossNode.affinity[i] != nil || len(s.crossNode.spread[i]) > 0
	}
	return s
}

// visit goes on from the current placement. It returns true if there is nothing more to look for.
func (s *searcher) visit() bool {
	if s.t.expired() {
		s.stopped = true
		return true
	}
	key := s.key()
	if s.seen[key] {
		return false
	}
	s.seen[key] = true
	if s.t.betterThan(s.placed, s.best.placed) {
		s.best = s.packing()
		if s.ordered {
			s.best.path = slices.Clone(s.path)
		}
	}
	if s.t.full(s.placed) {
		return true
	}
	if !s.canStart() {
		return false
	}
	moved := false
	closed := s.closed
	for _, i := range s.nextRoles() {
		for _, at := range s.candidatesFor(i) {
			if !s.taken.take(i, s.candidates[at]) {
				continue
			}
			moved = true
			s.move(at, i, 1)
			s.path = append(s.path, step{s.candidates[at], i})
			done := s.visit()
			s.path = s.path[:len(s.path)-1]
			s.move(at, i, -1)
			s.taken.giveBack()
			if done {
				return true
			}
		}
		if !s.ordered {
			// Every placement that has one more of this role was tried; go on with the others as if these were all.
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

// nextRoles returns the roles that may be placed next.
func (s *searcher) nextRoles() []int {
	var out []int
	for _, i := range s.order {
		if s.placed[i] < s.t.roles[i].count && s.closed&(1<<i) == 0 {
			out = append(out, i)
		}
	}
	return out
}

// canStart reports whether the members that are not placed yet could still make the gang start.
func (s *searcher) canStart() bool {
	most := slices.Clone(s.placed)
	for i := range most {
		if s.closed&(1<<i) == 0 {
			most[i] = s.t.roles[i].count
		}
	}
	return s.hopeless || s.t.enough(most)
}

// followsOthers is 1 for a role that goes where other roles are, but not where it is itself.
func (s *searcher) followsOthers(i int) int {
	if r := s.crossNode.affinity[i]; r != nil && !r.match[i] {
		return 1
	}
	return 0
}

// candidatesFor returns the candidates that accept a member of role i next, best first, one of each group that are alike.
func (s *searcher) candidatesFor(i int) []int {
	type option struct{ at, ahead, waste int }
	var list []option
	for _, group := range s.groups {
		for _, at := range group {
			if s.accepts(at, i) {
				o := option{at: at, ahead: s.spreadCount(at, i)}
				if s.t.wastes(i, s.candidates[at]) {
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

// groupAlike groups the candidates by what they take and where they are. Domains of which every node has its own count only by what is
// in them.
func (s *searcher) groupAlike() [][]int {
	numbers := map[string]int{}
	var out [][]int
	for at, c := range s.candidates {
		var key strings.Builder
		fmt.Fprint(&key, c.kind)
		for k := range s.crossNode.keys {
			d := s.crossNode.domain[k][c.pos]
			if d >= 0 && s.crossNode.onePerNode[k] {
				d = -2
			}
			fmt.Fprintf(&key, "/%d", d)
		}
		for i := range s.t.roles {
			if r := s.crossNode.affinity[i]; r != nil {
				for j, k := range r.keys {
					if d := s.crossNode.domain[k][c.pos]; d >= 0 {
						fmt.Fprintf(&key, "/a%d", r.base[j][d])
					}
				}
			}
			for _, r := range s.crossNode.spread[i] {
				if d := s.crossNode.domain[r.key][c.pos]; d >= 0 {
					fmt.Fprintf(&key, "/s%d%t", r.base[d], r.counted[c.pos])
				}
			}
		}
		number, ok := numbers[key.String()]
		if !ok {
			number = len(numbers)
			numbers[key.String()] = number
			out = append(out, nil)
		}
		out[number] = append(out[number], at)
	}
	return out
}

// key names the placement, the same for placements that differ only by candidates that are alike.
func (s *searcher) key() string {
	var key strings.Builder
	var part []byte
	for g, group := range s.groups {
		var parts []string
		for _, at := range group {
			if s.used[at] == 0 {
				break
			}
			part = binary.BigEndian.AppendUint32(part[:0], uint32(g))
			for _, n := range s.counts[at] {
				part = binary.BigEndian.AppendUint32(part, uint32(n))
			}
			parts = append(parts, string(part))
		}
		slices.Sort(parts)
		for _, p := range parts {
			key.WriteString(p) // all of the same length
		}
	}
	key.Write(binary.BigEndian.AppendUint64(nil, s.closed))
	key.WriteString(s.taken.key())
	return key.String()
}

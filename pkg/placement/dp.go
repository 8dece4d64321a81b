package placement

import (
	"slices"
)

// dpTable has, for every combination of counts of all roles but the widest (a state), the largest count of the widest
// role that fits alongside them on the candidates added so far. States are numbered in mixed radix.
type dpTable struct {
	t      *task
	wide   int   // the role with the largest count
	other  []int // the other roles
	radix  []int
	digits [][]int // by state
	most   []int   // by state: largest count of the wide role, -1 if the state was not reached
	steps  []layer // one a candidate
}

// layer remembers for every state how its value came about.
type layer struct {
	from        []int32
	combination []int32 // -1: the candidate adds nothing
	most        []int
}

// The largest DP table that is built. Beyond it the search would not end in any budget.
const (
	maxStates = 1 << 15
	maxCells  = 1 << 23
)

// newDPTable returns the DP table before any candidate is added; nil if it would be too large.
func newDPTable(t *task) *dpTable {
	b := &dpTable{t: t}
	for i := range t.roles {
		if t.roles[i].count > t.roles[b.wide].count {
			b.wide = i
		}
	}
	states := 1
	for i := range t.roles {
		if i != b.wide {
			b.other = append(b.other, i)
			b.radix = append(b.radix, states)
			if states *= t.roles[i].count + 1; states > maxStates {
				return nil
			}
		}
	}
	b.digits, b.most = make([][]int, states), make([]int, states)
	for s := range b.digits {
		b.digits[s] = make([]int, len(b.other))
		for d, i := range b.other {
			b.digits[s][d] = s / b.radix[d] % (t.roles[i].count + 1)
		}
		b.most[s] = -1
	}
	b.most[0] = 0
	return b
}

// add adds a candidate that takes one of the combinations. It returns false if the budget is used up.
func (b *dpTable) add(combinations []combination) bool {
	if len(b.most)*(len(b.steps)+1) > maxCells || b.t.overBudget {
		return false
	}
	next := layer{from: make([]int32, len(b.most)), combination: make([]int32, len(b.most)), most: slices.Clone(b.most)}
	for s := range b.most {
		next.from[s], next.combination[s] = int32(s), -1
	}
	for s, most := range b.most {
		if most < 0 {
			continue
		}
		for at, p := range combinations {
			if b.t.expired() {
				return false
			}
			to := s
			for d, i := range b.other {
				to += b.radix[d] * min(p[i], b.t.roles[i].count-b.digits[s][d])
			}
			if sum := min(most+p[b.wide], b.t.roles[b.wide].count); sum > next.most[to] {
				next.most[to], next.from[to], next.combination[to] = sum, int32(s), int32(at)
			}
		}
	}
	b.most = next.most
	b.steps = append(b.steps, next)
	return true
}

// complete reports whether the whole gang fits on the candidates so far.
func (b *dpTable) complete() bool { return b.most[len(b.most)-1] == b.t.roles[b.wide].count }

// best reads the best packing out of the table: one that makes the gang start, then one with more members, then one with more
// members of the roles that come first.
func (b *dpTable) best(candidates []*candidate) packing {
	var choice combination
	state := 0
	for s := range b.most {
		if b.most[s] < 0 {
			continue
		}
		placed := make(combination, len(b.t.roles))
		placed[b.wide] = b.most[s]
		for d, i := range b.other {
			placed[i] = b.digits[s][d]
		}
		if choice == nil || b.t.betterThan(placed, choice) {
			choice, state = placed, s
		}
	}
	p := packing{placed: choice}
	for at := len(b.steps) - 1; at >= 0; at-- {
		step := b.steps[at]
		if step.combination[state] >= 0 {
			from := int(step.from[state])
			before := 0
			if at > 0 {
				before = b.steps[at-1].most[from]
			}
			counts := make(combination, len(choice))
			counts[b.wide] = step.most[state] - before
			for d, i := range b.other {
				counts[i] = b.digits[state][d] - b.digits[from][d]
			}
			p.candidates, p.counts = append(p.candidates, candidates[at]), append(p.counts, counts)
			state = from
		}
	}
	return p
}

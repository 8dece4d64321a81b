package placement

import "slices"

// table holds, for every combination of counts of all classes but the widest (a state), the largest count of the widest
// class that fits beside them on the sites added so far. States are numbered in mixed radix.
type table struct {
	t      *task
	wide   int   // the class with the largest count
	other  []int // the other classes
	radix  []int
	digits [][]int // by state
	most   []int   // by state: largest count of the wide class, -1 if the state was not reached
	steps  []layer // one a site
	sets   [][]pattern
}

// layer remembers for every state how its value came about.
type layer struct {
	from    []int32
	pattern []int32 // -1: the site adds nothing
	most    []int
}

// The largest table that is built. Beyond it the search would not end in any budget.
const (
	maxStates = 1 << 15
	maxCells  = 1 << 23
)

func newTable(t *task) *table {
	b := &table{t: t}
	for i := range t.classes {
		if t.classes[i].count > t.classes[b.wide].count {
			b.wide = i
		}
	}
	states := 1
	for i := range t.classes {
		if i != b.wide {
			b.other = append(b.other, i)
			b.radix = append(b.radix, states)
			if states *= t.classes[i].count + 1; states > maxStates {
				return nil
			}
		}
	}
	b.digits, b.most = make([][]int, states), make([]int, states)
	for s := range b.digits {
		b.digits[s] = make([]int, len(b.other))
		for d, i := range b.other {
			b.digits[s][d] = s / b.radix[d] % (t.classes[i].count + 1)
		}
		b.most[s] = -1
	}
	b.most[0] = 0
	return b
}

// add adds a site that takes one of the patterns. It returns false if the budget is used up.
func (b *table) add(patterns []pattern) bool {
	if len(b.most)*(len(b.steps)+1) > maxCells || b.t.late {
		return false
	}
	next := layer{from: make([]int32, len(b.most)), pattern: make([]int32, len(b.most)), most: slices.Clone(b.most)}
	for s := range b.most {
		next.from[s], next.pattern[s] = int32(s), -1
	}
	for s, most := range b.most {
		if most < 0 {
			continue
		}
		for at, p := range patterns {
			if b.t.expired() {
				return false
			}
			to := s
			for d, i := range b.other {
				to += b.radix[d] * min(p[i], b.t.classes[i].count-b.digits[s][d])
			}
			if sum := min(most+p[b.wide], b.t.classes[b.wide].count); sum > next.most[to] {
				next.most[to], next.from[to], next.pattern[to] = sum, int32(s), int32(at)
			}
		}
	}
	b.most = next.most
	b.steps, b.sets = append(b.steps, next), append(b.sets, patterns)
	return true
}

// complete tells whether the whole gang fits on the sites so far.
func (b *table) complete() bool { return b.most[len(b.most)-1] == b.t.classes[b.wide].count }

// best reads the best packing out of the table: one that makes the gang start, then one with more members, then one with more
// members of the classes that come first.
func (b *table) best(sites []*site) packing {
	var choice pattern
	state := 0
	for s := range b.most {
		if b.most[s] < 0 {
			continue
		}
		placed := make(pattern, len(b.t.classes))
		placed[b.wide] = b.most[s]
		for d, i := range b.other {
			placed[i] = b.digits[s][d]
		}
		if choice == nil || b.t.better(placed, choice) {
			choice, state = placed, s
		}
	}
	p := packing{placed: choice}
	for at := len(b.steps) - 1; at >= 0; at-- {
		step := b.steps[at]
		if step.pattern[state] >= 0 {
			from := int(step.from[state])
			before := 0
			if at > 0 {
				before = b.steps[at-1].most[from]
			}
			counts := make(pattern, len(choice))
			counts[b.wide] = step.most[state] - before
			for d, i := range b.other {
				counts[i] = b.digits[state][d] - b.digits[from][d]
			}
			p.sites, p.counts = append(p.sites, sites[at]), append(p.counts, counts)
			state = from
		}
	}
	return p
}

// better tells whether placing a is better than placing b.
func (t *task) better(a, b pattern) bool {
	if x, y := t.enough(a), t.enough(b); x != y {
		return x
	}
	sum := 0
	for i := range a {
		sum += a[i] - b[i]
	}
	if sum != 0 {
		return sum > 0
	}
	return slices.Compare(a, b) > 0
}

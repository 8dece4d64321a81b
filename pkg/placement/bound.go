package placement

import corev1 "k8s.io/api/core/v1"

// bound looks for numbers that prove that the gang does not fit on the sites; nil if there are none. They hold whatever the
// packing, and whatever members do to each other.
func (t *task) bound(sites []*site) *Bound {
	slots, words := make([]int64, len(t.classes)), make([]Constraint, len(t.classes))
	var sum, all int64
	for i := range t.classes {
		slots[i], words[i] = t.ceiling(sites, i)
		sum += min(slots[i], int64(t.classes[i].count))
		all += int64(t.classes[i].count)
	}
	for i := range t.classes {
		k := &t.classes[i]
		need := max(int64(k.min), int64(t.required)-(all-int64(k.count)))
		if slots[i] < need {
			return &Bound{Role: k.name, Need: need, Have: slots[i], Constraint: words[i]}
		}
	}
	if sum < int64(t.required) {
		return &Bound{Need: int64(t.required), Have: sum}
	}
	for pos, name := range t.c.names.list {
		if b := t.boundOf(sites, pos, name); b != nil {
			return b
		}
	}
	return nil
}

// ceiling is how many members of a class the sites hold at most, without any other class, and the rule that limits the number
// if it is not amounts.
func (t *task) ceiling(sites []*site, i int) (int64, Constraint) {
	var sum int64
	var word Constraint
	for _, s := range sites {
		sum += int64(s.slots[i])
		if s.clashes(i)&(1<<i) != 0 && t.classes[i].alone(s.n) > 1 {
			word = t.nearWord(i)
		}
	}
	if t.far != nil {
		if most, by := t.far.ceiling(sites, i, sum); by != "" {
			return most, by
		}
	}
	return sum, word
}

// nearWord is the rule by which a node takes only one member of a class.
func (t *task) nearWord(i int) Constraint {
	for _, r := range t.near {
		if r.a == i && r.b == i {
			return r.word
		}
	}
	return ""
}

// boundOf compares what the sites have of one resource with the least that a gang large enough asks for.
func (t *task) boundOf(sites []*site, pos int, name corev1.ResourceName) *Bound {
	amounts := make([]int64, len(t.classes))
	asked := false
	for i := range t.classes {
		amounts[i] = t.classes[i].rules.need[pos]
		asked = asked || amounts[i] > 0
	}
	if !asked {
		return nil
	}
	least := t.least(amounts)
	var have int64
	for _, s := range sites {
		for i := range t.classes {
			if s.ok[i] && amounts[i] > 0 {
				have += s.free[pos]
				break
			}
		}
	}
	if have >= least {
		return nil
	}
	return &Bound{Resource: name, Need: least, Have: have}
}

// least is the smallest amount that a part of the gang asks for that makes the gang start: the members that must be there,
// and the cheapest others up to the required number.
func (t *task) least(amounts []int64) int64 {
	var sum int64
	left := t.required
	spare := make([]int, len(t.classes))
	for i := range t.classes {
		sum += amounts[i] * int64(t.classes[i].min)
		left -= t.classes[i].min
		spare[i] = t.classes[i].count - t.classes[i].min
	}
	for left > 0 {
		cheapest := -1
		for i := range spare {
			if spare[i] > 0 && (cheapest < 0 || amounts[i] < amounts[cheapest]) {
				cheapest = i
			}
		}
		if cheapest < 0 {
			break
		}
		n := min(left, spare[cheapest])
		sum += amounts[cheapest] * int64(n)
		left -= n
		spare[cheapest] -= n
	}
	return sum
}

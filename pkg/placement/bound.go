package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// countingBound looks for numbers that prove that the gang does not fit on the candidates; nil if there are none. They hold whatever the
// packing, and whatever members do to each other.
func (t *task) countingBound(candidates []*candidate) *Bound {
	slots, limits := make([]int64, len(t.roles)), make([]Constraint, len(t.roles))
	var sum int64
	for i := range t.roles {
		slots[i], limits[i] = t.maxMembers(candidates, i)
		sum += min(slots[i], int64(t.roles[i].count))
	}
	for i := range t.roles {
		k := &t.roles[i]
		if required := int64(t.least(i)); slots[i] < required {
			return &Bound{Role: k.name, Need: required, Have: slots[i], Constraint: limits[i]}
		}
	}
	if sum < int64(t.required) {
		return &Bound{Need: int64(t.required), Have: sum}
	}
	for pos, name := range t.c.names.list {
		if b := t.resourceBound(candidates, pos, name); b != nil {
			return b
		}
	}
	if b := t.devices.bound(t, candidates); b != nil {
		return b
	}
	return t.attach.bound(t, candidates)
}

// maxMembers is how many members of a role the candidates hold at most, without any other role, and the rule that limits the number
// if it is not amounts.
func (t *task) maxMembers(candidates []*candidate, i int) (int64, Constraint) {
	var sum int64
	var limit Constraint
	for _, s := range candidates {
		sum += int64(s.slots[i])
		if s.conflictsWith(i)&(1<<i) != 0 && t.roles[i].alone(s.n) > 1 {
			limit = t.sameNodeConstraint(i)
		}
	}
	if t.crossNode != nil {
		if most, by := t.crossNode.maxMembers(candidates, i, sum); by != "" {
			return most, by
		}
	}
	return sum, limit
}

// sameNodeConstraint is the rule by which a node takes only one member of a role.
func (t *task) sameNodeConstraint(i int) Constraint {
	for _, r := range t.sameNode {
		if r.a == i && r.b == i {
			return r.constraint
		}
	}
	return ""
}

// resourceBound compares what the candidates have of one resource with the least that a gang large enough requests.
func (t *task) resourceBound(candidates []*candidate, pos int, name corev1.ResourceName) *Bound {
	amounts := make([]int64, len(t.roles))
	requested := false
	for i := range t.roles {
		amounts[i] = t.roles[i].rules.requests[pos]
		requested = requested || amounts[i] > 0
	}
	if !requested {
		return nil
	}
	least := t.leastRequested(amounts)
	var have int64
	for _, s := range candidates {
		for i := range t.roles {
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

// leastRequested is the smallest amount that a part of the gang requests that makes the gang start: the members that must be there,
// and the cheapest others up to the required number.
func (t *task) leastRequested(amounts []int64) int64 {
	var sum int64
	left := t.required
	spare := make([]int, len(t.roles))
	for i := range t.roles {
		sum += amounts[i] * int64(t.roles[i].min)
		left -= t.roles[i].min
		spare[i] = t.roles[i].count - t.roles[i].min
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

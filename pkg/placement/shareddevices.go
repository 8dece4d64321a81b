package placement

import (
	"encoding/json"
	"iter"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// sharedDevices are a claim that has no devices yet, and that several members use. The member that is placed first decides for all: the scheduler chooses
// devices that are to be had on its node, and the others have to go where these are to be had, too. They take the devices once.
type sharedDevices struct {
	claim *resourceapi.ResourceClaim
	users []bool // by role
}

// share records that the members of a role share a claim with others.
func (d *deviceFit) share(t *task, claim *resourceapi.ResourceClaim, role int) {
	at := slices.IndexFunc(d.shared, func(k sharedDevices) bool { return k.claim == claim })
	if at < 0 {
		at = len(d.shared)
		d.shared = append(d.shared, sharedDevices{claim: claim, users: make([]bool, len(t.roles))})
	}
	d.shared[at].users[role] = true
}

// uses reports whether the members of a role claim devices.
func (d *deviceFit) uses(role int) bool {
	return len(d.claims[role]) > 0 || slices.ContainsFunc(d.shared, func(k sharedDevices) bool { return k.users[role] })
}

// usedBy reports whether one of some members uses the claim.
func (k sharedDevices) usedBy(counts combination) bool {
	for i, n := range counts {
		if n > 0 && k.users[i] {
			return true
		}
	}
	return false
}

// usedOn reports whether a candidate takes a member that uses the claim.
func (k sharedDevices) usedOn(s *candidate) bool { return k.usedBy(s.slots) }

// solveDevices tries, for one claim after the other, all devices that it can get: those of one candidate after the other.
func (t *task) solveDevices(left []sharedDevices, candidates []*candidate) solution {
	if len(left) == 0 {
		return t.solveVolumes(t.sharedVolumes, candidates, nil)
	}
	if t.overdue() {
		return solution{packing: t.emptyPacking(), proof: BudgetHit}
	}
	k := left[0]
	a := bestOf(t, t.reaches(k, candidates), func(reach func(*corev1.Node) bool) solution {
		a := t.solveDevices(left[1:], t.withoutRoles(k.users, candidates, reach))
		t.blame(a.bound, k.users, DRADevices)
		return a
	})
	if t.undecided() && a.proof != Witness {
		a.proof, a.bound = BudgetHit, nil
	}
	return a
}

// reaches are the sets of nodes from which the devices can be had that a claim may get, each once, and then none: a gang may start without the members that
// use it. Of those on which too few members have room, as on each node where devices are of one, it is the one that has most, if there is no other: it shows
// how many have.
func (t *task) reaches(k sharedDevices, candidates []*candidate) iter.Seq[func(*corev1.Node) bool] {
	return func(yield func(func(*corev1.Node) bool) bool) {
		var largest func(*corev1.Node) bool
		seen, most := map[string]bool{}, 0
		for _, s := range candidates {
			if !k.usedOn(s) || t.undecided() {
				continue
			}
			results, reason, decided := t.devices.allocate(s.n, copiesFor([]*resourceapi.ResourceClaim{k.claim}, "shared"))
			if !decided {
				t.devices.undecided = true
			}
			if !decided || reason != "" || len(results) == 0 {
				continue
			}
			name, reach, alone := reachOf(results[0].NodeSelector, s.n.obj)
			if seen[name] {
				continue
			}
			seen[name] = true
			within := candidates
			if alone {
				within = []*candidate{s}
			}
			slots, enough := t.roomForUsers(k.users, within, reach)
			if enough {
				if largest, most = nil, math.MaxInt; !yield(reach) {
					return
				}
			} else if slots > most {
				largest, most = reach, slots
			}
		}
		if largest != nil && !yield(largest) {
			return
		}
		yield(func(*corev1.Node) bool { return false })
	}
}

// roomForUsers sums for how many members of some roles the nodes of a reach have room, and reports whether it is as many as must be placed of each.
func (t *task) roomForUsers(users []bool, candidates []*candidate, reach func(*corev1.Node) bool) (sum int, enough bool) {
	slots := make([]int, len(t.roles))
	for _, s := range candidates {
		if reach(s.n.obj) {
			for i, n := range s.slots {
				slots[i] += n
			}
		}
	}
	enough = true
	for i, n := range slots {
		if users[i] {
			sum, enough = sum+min(n, t.roles[i].count), enough && n >= t.least(i)
		}
	}
	return sum, enough
}

// reachOf is which nodes a selector of devices that were allocated for a node selects, all without one, and a name for it. alone reports that it selects that node
// by its name, and no other.
func reachOf(where *corev1.NodeSelector, n *corev1.Node) (name string, reach func(*corev1.Node) bool, alone bool) {
	if where == nil {
		return "", func(*corev1.Node) bool { return true }, false
	}
	if terms := where.NodeSelectorTerms; len(terms) == 1 && len(terms[0].MatchExpressions) == 0 && len(terms[0].MatchFields) == 1 &&
		terms[0].MatchFields[0].Operator == corev1.NodeSelectorOpIn && slices.Equal(terms[0].MatchFields[0].Values, []string{n.Name}) {
		return "node " + n.Name, func(other *corev1.Node) bool { return other.Name == n.Name }, true
	}
	text, err := json.Marshal(where)
	if err != nil {
		return "none", func(*corev1.Node) bool { return false }, false
	}
	selector, err := nodeaffinity.NewNodeSelector(where)
	return string(text), func(n *corev1.Node) bool { return err == nil && selector.Match(n) }, false
}

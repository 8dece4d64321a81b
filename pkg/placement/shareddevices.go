package placement

import (
	"encoding/json"
	"fmt"
	"iter"
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

// share records that the members of a role share a claim with others. Of devices that several nodes share it is not looked at what is left for other nodes.
func (d *deviceFit) share(t *task, claim *resourceapi.ResourceClaim, role int) {
	at := slices.IndexFunc(d.shared, func(k sharedDevices) bool { return k.claim == claim })
	if at < 0 {
		at = len(d.shared)
		d.shared = append(d.shared, sharedDevices{claim: claim, users: make([]bool, len(t.roles))})
		if slices.ContainsFunc(t.c.objects.ResourceSlices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.NodeName == nil }) {
			t.unmodelled[fmt.Sprintf("ResourceClaim %s, which members share, is not allocated yet", claim.Name)] = true
		}
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
		if a.bound != nil && a.bound.Role != "" && a.bound.Constraint == "" {
			a.bound.Constraint = DRADevices
		}
		return a
	})
	if t.undecided() && a.proof != Witness {
		a.proof, a.bound = BudgetHit, nil
	}
	return a
}

// reaches are the sets of nodes from which the devices can be had that a claim may get, each once, and then none: a gang may start without the members that
// use it.
func (t *task) reaches(k sharedDevices, candidates []*candidate) iter.Seq[func(*corev1.Node) bool] {
	return func(yield func(func(*corev1.Node) bool) bool) {
		seen := map[string]bool{}
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
			name, reach := reachOf(results[0].NodeSelector)
			if seen[name] {
				continue
			}
			if seen[name] = true; !yield(reach) {
				return
			}
		}
		yield(func(*corev1.Node) bool { return false })
	}
}

// reachOf is which nodes a selector of allocated devices selects, all without one, and a name for it.
func reachOf(where *corev1.NodeSelector) (name string, reach func(*corev1.Node) bool) {
	if where == nil {
		return "", func(*corev1.Node) bool { return true }
	}
	text, err := json.Marshal(where)
	if err != nil {
		return "none", func(*corev1.Node) bool { return false }
	}
	selector, err := nodeaffinity.NewNodeSelector(where)
	return string(text), func(n *corev1.Node) bool { return err == nil && selector.Match(n) }
}

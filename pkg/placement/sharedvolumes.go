package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
)

// sharedVolume is a claim that waits for its first consumer, and that several members use, or whose volume another claim may get. The
// member that is placed first decides for all: the scheduler chooses a volume that can be reached from its node, or has one made for
// that node, and the others have to go where that volume is.
type sharedVolume struct {
	claim
	users []bool // by class
}

// shareVolumes finds the claims that tie members to each other.
func (t *task) shareVolumes() {
	if t.opts.Ignore.Has(VolumeNode) {
		return
	}
	shared, members, rivals := map[string]*sharedVolume{}, map[string]int{}, map[string]int{}
	for i := range t.classes {
		pod := t.classes[i].rules.pod
		for _, k := range t.c.claims(pod) {
			if k.own || k.problem != "" || k.pv != nil || k.pvc.Annotations[volume.AnnSelectedNode] != "" {
				continue
			}
			name := k.pvc.Namespace + "/" + k.pvc.Name
			if shared[name] == nil {
				shared[name] = &sharedVolume{claim: k, users: make([]bool, len(t.classes))}
				if len(t.c.offered(k.class.Name)) > 0 {
					rivals[k.class.Name]++
				}
			}
			shared[name].users[i] = true
			members[name] += t.classes[i].count
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		if members[name] > 1 || rivals[shared[name].class.Name] > 1 {
			t.shared = append(t.shared, shared[name])
		}
	}
}

// solve answers for a set of sites: for the best of the volumes that the members can share.
func (t *task) solve(sites []*site) answer { return t.solveShared(t.shared, sites, nil) }

// solveShared tries, for one claim after the other, every volume that it can get; taken are those that other claims got.
func (t *task) solveShared(left []*sharedVolume, sites []*site, taken map[string]*corev1.PersistentVolume) answer {
	if len(left) == 0 {
		return t.solveOn(sites)
	}
	if t.overdue() {
		return answer{packing: t.nothing(), proof: BudgetHit}
	}
	k := left[0]
	ways := map[string]func() answer{"": func() answer { // a gang may start without the members that use it
		return t.solveShared(left[1:], t.without(k.users, sites, func(*corev1.Node) bool { return false }), taken)
	}}
	order := []string{}
	for _, s := range sites {
		if !k.usedOn(s) {
			continue
		}
		chosen := maps.Clone(taken)
		if chosen == nil {
			chosen = map[string]*corev1.PersistentVolume{}
		}
		before := len(chosen)
		if t.c.provisionable(k.claim, s.n.obj, chosen) != "" {
			continue
		}
		name, reach := t.likes(s), func(n *corev1.Node) bool { return n.Name == s.n.obj.Name }
		if len(chosen) > before {
			pv := added(chosen, taken)
			name, reach = "volume/"+pv.Name, func(n *corev1.Node) bool { return volume.CheckNodeAffinity(pv, n.Labels) == nil }
		}
		if ways[name] == nil {
			order = append(order, name)
			ways[name] = func() answer { return t.solveShared(left[1:], t.without(k.users, sites, reach), chosen) }
		}
	}
	return t.bestOf(append(order, ""), func(name string) answer {
		a := ways[name]()
		if a.bound != nil && a.bound.Role != "" && a.bound.Constraint == "" {
			a.bound.Constraint = VolumeNode
		}
		return a
	})
}

// likes names the sites of which one is as good as the other for all members together.
func (t *task) likes(s *site) string {
	if t.far != nil {
		return "node/" + s.n.obj.Name
	}
	return fmt.Sprint("kind/", s.kind)
}

// usedOn tells whether a site takes a member that uses the claim.
func (k *sharedVolume) usedOn(s *site) bool {
	for i, uses := range k.users {
		if uses && s.slots[i] > 0 {
			return true
		}
	}
	return false
}

// added is the volume that is in one set and not in the other.
func added(with, without map[string]*corev1.PersistentVolume) *corev1.PersistentVolume {
	for name, pv := range with {
		if without[name] == nil {
			return pv
		}
	}
	return nil
}

// without takes classes off the sites from which their volume cannot be reached.
func (t *task) without(classes []bool, sites []*site, reach func(*corev1.Node) bool) []*site {
	out := make([]*site, 0, len(sites))
	for _, s := range sites {
		if !reach(s.n.obj) {
			s = s.unslotted(classes)
		}
		if slices.ContainsFunc(s.slots, func(n int) bool { return n > 0 }) {
			out = append(out, s)
		}
	}
	t.classify(out)
	return out
}

// unslotted is the site for the other classes only.
func (s *site) unslotted(classes []bool) *site {
	other := *s
	other.ok, other.slots = slices.Clone(s.ok), slices.Clone(s.slots)
	for i, off := range classes {
		if off {
			other.ok[i], other.slots[i] = false, 0
		}
	}
	return &other
}

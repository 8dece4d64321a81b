package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/storage/volume"
)

// sharedVolume is a claim that waits for its first consumer, and that several members use, or whose volume another claim may get. The
// member that is placed first decides for all: the scheduler chooses a volume that can be reached from its node, or has one made for
// that node, and the others have to go where that volume is. One that several nodes may attach is made before any member is placed, see GangPlanner.
type sharedVolume struct {
	claim
	users []bool // by role
}

// findSharedVolumes finds the claims that tie members to each other.
func (t *task) findSharedVolumes() {
	shared, members, rivals := map[string]*sharedVolume{}, map[string]int{}, map[string]int{}
	for i := range t.roles {
		if t.ignores(i, VolumeNode) {
			continue
		}
		pod := t.roles[i].rules.pod
		for _, k := range t.c.claims(pod) {
			if k.own || k.problem != "" || k.pv != nil || k.pvc.Annotations[volume.AnnSelectedNode] != "" {
				continue
			}
			name := k.pvc.Namespace + "/" + k.pvc.Name
			if shared[name] == nil {
				shared[name] = &sharedVolume{claim: k, users: make([]bool, len(t.roles))}
				if t.c.volumes().offered[k.class.Name] != nil {
					rivals[k.class.Name]++
				}
			}
			shared[name].users[i] = true
			members[name] += t.roles[i].count
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		if members[name] > 1 || rivals[shared[name].class.Name] > 1 {
			t.sharedVolumes = append(t.sharedVolumes, shared[name])
		}
	}
}

// solveDomain solves the gang on some candidates: with the best of the devices and volumes that the members can share.
func (t *task) solveDomain(candidates []*candidate) solution {
	if t.devices == nil {
		return t.solveVolumes(t.sharedVolumes, candidates, nil)
	}
	return t.solveDevices(t.devices.shared, candidates)
}

// solveVolumes tries, for one claim after the other, every volume that it can get; taken are those that other claims got.
func (t *task) solveVolumes(left []*sharedVolume, candidates []*candidate, taken map[string]*corev1.PersistentVolume) solution {
	if len(left) == 0 {
		return t.solveCandidates(candidates)
	}
	if t.overdue() {
		return solution{packing: t.emptyPacking(), proof: BudgetHit}
	}
	k := left[0]
	ways := map[string]func() solution{"": func() solution { // a gang may start without the members that use it
		return t.solveVolumes(left[1:], t.withoutRoles(k.users, candidates, func(*corev1.Node) bool { return false }), taken)
	}}
	order := []string{}
	for _, s := range candidates {
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
		name, reach := t.interchangeable(s), func(n *corev1.Node) bool { return n.Name == s.n.obj.Name }
		if SeveralNodes(k.pvc) {
			keys := t.c.segmentKeys(k.class, s.n.obj)
			segment := segmentOf(s.n.obj, keys)
			name, reach = "segment/"+segment, func(n *corev1.Node) bool { return segmentOf(n, keys) == segment }
		}
		if len(chosen) > before {
			pv := newVolume(chosen, taken)
			if name = "volume/" + pv.Name; ways[name] != nil {
				continue
			}
			reach = reaches(pv)
		}
		if ways[name] == nil {
			order = append(order, name)
			ways[name] = func() solution { return t.solveVolumes(left[1:], t.withoutRoles(k.users, candidates, reach), chosen) }
		}
	}
	return bestOf(t, slices.Values(append(order, "")), func(name string) solution {
		a := ways[name]()
		t.blame(a.bound, k.users, VolumeNode)
		return a
	})
}

// blame has a bound report that what some roles use together is what limits one of them, where nothing else does.
func (t *task) blame(bound *Bound, users []bool, by Constraint) {
	if bound == nil || bound.Constraint != "" {
		return
	}
	if i := slices.IndexFunc(t.roles, func(k searchRole) bool { return k.name == bound.Role }); i >= 0 && users[i] {
		bound.Constraint = by
	}
}

// SeveralNodes reports whether a claim is for a volume that several nodes may attach. One that only a single node may is of no use to members on others.
func SeveralNodes(pvc *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(pvc.Spec.AccessModes, corev1.ReadWriteMany) || slices.Contains(pvc.Spec.AccessModes, corev1.ReadOnlyMany)
}

// SelectedNode is the node for which the volume of a claim is being made; empty for none. Whoever may write the claim may have written what is there: it is
// a name that a node can have.
func SelectedNode(pvc *corev1.PersistentVolumeClaim) string {
	node := pvc.Annotations[volume.AnnSelectedNode]
	if len(validation.IsDNS1123Subdomain(node)) > 0 {
		return ""
	}
	return node
}

// segmentKeys are the node labels by which a driver places the volumes that it makes: every node with the same values reaches them. They are those that the
// driver reports of the node, or else those by which the class allows places; without either every node reaches them, as it does network storage.
func (c *Cluster) segmentKeys(class *storagev1.StorageClass, n *corev1.Node) (keys []string) {
	if reported := c.volumes().reported[n.Name]; reported != nil {
		for _, d := range reported.Spec.Drivers {
			if d.Name == class.Provisioner {
				return slices.Sorted(slices.Values(d.TopologyKeys))
			}
		}
	}
	for _, term := range class.AllowedTopologies {
		for _, e := range term.MatchLabelExpressions {
			if !slices.Contains(keys, e.Key) {
				keys = append(keys, e.Key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// segmentOf is the values that a node has of some labels, as text.
func segmentOf(n *corev1.Node, keys []string) string {
	values := make([]string, 0, len(keys))
	for _, key := range keys {
		values = append(values, fmt.Sprintf("%q", n.Labels[key]))
	}
	return strings.Join(values, ",")
}

// interchangeable names the candidates of which one is as good as the other for all members together.
func (t *task) interchangeable(s *candidate) string {
	if t.crossNode != nil {
		return "node/" + s.n.obj.Name
	}
	return fmt.Sprint("kind/", s.kind)
}

// usedOn reports whether a candidate takes a member that uses the claim.
func (k *sharedVolume) usedOn(s *candidate) bool {
	for i, uses := range k.users {
		if uses && s.slots[i] > 0 {
			return true
		}
	}
	return false
}

// newVolume is the volume that is in one set and not in the other.
func newVolume(with, without map[string]*corev1.PersistentVolume) *corev1.PersistentVolume {
	for name, pv := range with {
		if without[name] == nil {
			return pv
		}
	}
	return nil
}

// withoutRoles takes roles off the candidates from which their volume cannot be reached.
func (t *task) withoutRoles(roles []bool, candidates []*candidate, reach func(*corev1.Node) bool) []*candidate {
	return t.masked(candidates, func(s *candidate, off []bool) {
		if !reach(s.n.obj) {
			copy(off, roles)
		}
	})
}

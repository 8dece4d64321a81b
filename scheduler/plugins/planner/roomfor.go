package planner

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// wants are the members that a gang lacks places for, by a proof that it has no placement.
type wants struct {
	roles []wantedRole
	// places is how many more of them nodes would have to have before there may be a placement.
	places int
	// any: it may be there as soon as the node that has changed has a place, whatever it had before. Which node a place is on counts, or which
	// role it is for.
	any bool
}

// wantedRole is a role of a gang that waits.
type wantedRole struct {
	pod       *corev1.Pod // a member, without what does not affect its place: it may be gone
	signature string      // equal for pods of equal requirements
	charge    placement.Charge
	preempts  bool // pods of a lower priority may make room for it
}

// preempting is what a gang lacks that may have others evicted, and has no placement for all that. How much more room is enough with them is not
// known: that a node that has changed has a place without them may be.
func (w *wants) preempting() *wants {
	if w == nil {
		return nil
	}
	all := &wants{places: 1, any: true}
	for _, role := range w.roles {
		role.preempts = true
		role.signature = fmt.Sprintf("%s, in the place of those below %d", role.signature, corev1helpers.PodPriority(role.pod))
		all.roles = append(all.roles, role)
	}
	return all
}

// wants returns what a gang lacks that is proven to have no placement; nil where that is not known, or a place depends on more than its node: on
// where other pods are, those of the gang among them, or on volumes or devices.
func (q *query) wants(proof placement.Result) *wants {
	if len(q.gang.Bound) > 0 && !q.gang.Topology.Empty() || slices.ContainsFunc(q.members.roles, func(r placement.Role) bool { return dependsOnOthers(r.Pod) }) {
		return nil
	}
	w := &wants{places: 1, any: len(q.members.roles) != 1 || !q.gang.Topology.Empty() || q.kept != q.free}
	for _, r := range q.members.roles {
		signature, err := placement.Signature(r.Pod, nil)
		if err != nil {
			return nil
		}
		member := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Pod.Namespace, UID: r.Pod.UID}, Spec: r.Pod.Spec}
		w.roles = append(w.roles, wantedRole{member, signature, placement.ChargeOf(member), false})
	}
	if b := proof.Bound; b != nil && b.Resource == "" && !w.any {
		w.places = max(1, int(b.Need-b.Have))
	}
	return w
}

// dependsOnOthers reports whether a place for a pod depends on where other pods are, or on volumes or devices.
func dependsOnOthers(pod *corev1.Pod) bool {
	return placement.DependsOnPods(pod) || placement.HasVolumes(pod) || len(pod.Spec.ResourceClaims) > 0
}

// roomFor has how many members of gangs a node had places for, and how many it has, before and after an event.
type roomFor struct {
	before, now *lone
	places      map[string]places // by the signature of the role
	// any: room for one member may be enough for every gang. The node is in another domain now, or has pods that the engine has assumed to be there
	// and may take away again; they are not counted.
	any bool
}

// places are the numbers for one role.
type places struct{ before, now int }

func newRoomFor(before, now engine.NodeState, moved bool) *roomFor {
	return &roomFor{before: &lone{state: before}, now: &lone{state: now}, places: map[string]places{}, any: moved || len(now.Assumed) > 0}
}

// of returns the places for a role.
func (r *roomFor) of(role wantedRole) places {
	known, ok := r.places[role.signature]
	if !ok {
		if known.now = r.now.placesFor(role); known.now > 0 {
			known.before = r.before.placesFor(role)
		}
		r.places[role.signature] = known
	}
	return known
}

// lone is one node, as a cluster once that is needed.
type lone struct {
	state   engine.NodeState
	cluster *placement.Cluster
	without map[int32]*placement.Cluster // without the pods below a priority
}

// clusterFor is the node as a role may use it.
func (n *lone) clusterFor(role wantedRole) *placement.Cluster {
	made := func(pods []*corev1.Pod) *placement.Cluster {
		return placement.NewCluster(placement.Objects{Nodes: []*corev1.Node{n.state.Node}, Pods: pods}).AsScheduled()
	}
	if !role.preempts {
		if n.cluster == nil {
			n.cluster = made(n.state.Pods)
		}
		return n.cluster
	}
	priority := corev1helpers.PodPriority(role.pod)
	if n.without[priority] == nil {
		if n.without == nil {
			n.without = map[int32]*placement.Cluster{}
		}
		n.without[priority] = made(slices.DeleteFunc(slices.Clone(n.state.Pods), func(p *corev1.Pod) bool { return corev1helpers.PodPriority(p) < priority }))
	}
	return n.without[priority]
}

// mostPlaces is more than a node has.
const mostPlaces = 1024

// notLocal are the rules that no proof rests on, and those that depend on other nodes' pods: places do not show which gangs they help.
var notLocal = placement.Constraints{}.Insert(unproven...).Insert(placement.PodAntiAffinity)

// placesFor counts the places for pods of a role, by what its node alone decides; there are none where there is no node. Most nodes are full, which is
// seen at once.
func (n *lone) placesFor(role wantedRole) int {
	if n.state.Node == nil || !n.clusterFor(role).Affords(role.charge) {
		return 0
	}
	slots := placement.Slots(n.clusterFor(role), role.pod, mostPlaces, placement.Options{Ignore: notLocal})
	if len(slots) == 0 {
		return 0
	}
	return int(slots[0].Slots)
}

// helps reports whether the gang may have a placement after an event on a node. What the event brought is counted, together with what came before.
func (w *wants) helps(room *roomFor) bool {
	for _, role := range w.roles {
		at := room.of(role)
		switch {
		case role.preempts && !room.any && at.now <= at.before: // no more than there was with those that it may have evicted
		case (w.any || room.any) && at.now > 0:
			w.places = 0
		case !w.any:
			w.places -= max(0, at.now-at.before)
		}
	}
	return w.places <= 0
}

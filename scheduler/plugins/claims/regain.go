package claims

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

const (
	// leavesWithin is how long after its grace a pod that is being deleted has its place. One on a node that is dead is not waited for longer.
	leavesWithin = time.Minute
	// regainsWithin is for how long a gang below its minimum may have again what it has lost although a reservation keeps others off.
	regainsWithin = time.Hour
)

// whole are the members of a gang that had places when they were as many as it requires.
type whole struct {
	members map[types.UID]had
	below   time.Time // since when they are fewer; zero if they are not
}

// had is what a member requested when it was first seen.
type had struct {
	name    string
	amounts Amounts
}

// Whole records that a gang has as many members with places as it requires. That is what it may have again, whatever is reserved: the
// minimum and the pods are its users' to change.
func (l *Ledger) Whole(group types.NamespacedName, members []*corev1.Pod) {
	l.mu.Lock()
	before := l.whole[group] // not changed, but replaced
	l.mu.Unlock()
	now := whole{members: make(map[types.UID]had, len(members))}
	var last Amounts
	for _, pod := range members {
		member, known := before.members[pod.UID]
		if !known {
			member = had{pod.Name, AmountsOf(pod)}
			if maps.Equal(member.amounts, last) {
				member.amounts = last // members are alike, and there are many
			}
		}
		now.members[pod.UID], last = member, member.amounts
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole[group] = now
}

// Below records that fewer members of a gang have places than it requires.
func (l *Ledger) Below(group types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w, known := l.whole[group]; known && w.below.IsZero() {
		w.below = l.clock.Now()
		l.whole[group] = w
	}
}

// Unplaced records that no member of a gang has a place.
func (l *Ledger) Unplaced(group types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.whole, group)
}

// lost is what the members had that a gang below its minimum has lost since it was whole, less what those have that came since, and of no
// more members than it lacks: a reservation may wait for the end of that gang, which does not come before it is whole again. It is nil for
// others, and as long as nothing is reserved.
func (l *Ledger) lost(group types.NamespacedName) Amounts {
	lacking := 0
	if l.has(Reservation) {
		lacking = l.engine.Lacking(group)
	}
	l.mu.Lock()
	before := l.whole[group]
	l.mu.Unlock()
	now := l.clock.Now()
	if lacking == 0 || len(before.members) == 0 || !before.below.IsZero() && now.Sub(before.below) > regainsWithin {
		return nil
	}
	left, placed := Amounts{}, map[types.UID]bool{}
	for _, pod := range l.engine.Scheduled(group) {
		placed[pod.UID] = true
		if _, known := before.members[pod.UID]; !known {
			left.add(AmountsOf(pod), -1)
		}
	}
	for uid, member := range before.members {
		if !placed[uid] && !l.leaves(group.Namespace, member.name, uid, now) {
			left.add(member.amounts, 1)
		}
	}
	left[corev1.ResourcePods] = min(left[corev1.ResourcePods], int64(lacking))
	return left
}

// leaves reports whether a pod is being deleted, and has its place as yet.
func (l *Ledger) leaves(namespace, name string, uid types.UID, now time.Time) bool {
	pod := l.engine.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}})
	return pod != nil && pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(leavesWithin))
}

// covers reports whether a pod requests no more than was lost.
func (a Amounts) covers(pod *corev1.Pod) bool { return len(a) > 0 && AmountsOf(pod).Within(a) }

// regained is what is left of what a gang has lost while the engine tries a placement of its members.
type regained struct {
	left    Amounts
	members map[types.UID]bool // that have a place in it
}

// Clone implements fwk.StateData: all members share it.
func (r *regained) Clone() fwk.StateData { return r }

// regainedKey is where it is kept.
const regainedKey fwk.StateKey = Name + "/regained"

// lost is what a gang has lost when one of its members is tried, less what others get in the same placement.
func (p *Plugin) lost(state fwk.CycleState, group types.NamespacedName) Amounts {
	if !state.IsPodGroupSchedulingCycle() {
		return p.ledger.lost(group)
	}
	tried := state.GetPlacementCycleState()
	if known, err := tried.Read(regainedKey); err == nil {
		if r, ok := known.(*regained); ok {
			return r.left
		}
	}
	r := &regained{left: p.ledger.lost(group)}
	if r.left != nil {
		r.members = map[types.UID]bool{}
	}
	tried.Write(regainedKey, r)
	return r.left
}

// Reserve implements fwk.ReservePlugin. It counts the place of a member in the placement that the engine tries.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() {
		return nil
	}
	known, err := state.GetPlacementCycleState().Read(regainedKey)
	if r, ok := known.(*regained); err == nil && ok && r.left != nil && !r.members[pod.UID] {
		r.members[pod.UID] = true
		r.left.add(AmountsOf(pod), -1)
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin: a placement that is given up is forgotten.
func (p *Plugin) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

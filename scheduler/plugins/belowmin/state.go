package belowmin

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// members are the pods of a gang below its minimum, by whether they have a node.
type members struct {
	required int
	placed   []*corev1.Pod // have a node, and are not being deleted
	lost     []*corev1.Pod // those of them whose node is gone
	waiting  []*corev1.Pod // have none
	others   int           // are being deleted, or have failed
}

func membersOf(pods []*corev1.Pod, required int32, nodeExists func(string) bool) members {
	m := members{required: int(required)}
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded: // perhaps of an earlier gang of that name
		case pod.Status.Phase == corev1.PodFailed, pod.DeletionTimestamp != nil:
			m.others++
		case pod.Spec.NodeName == "":
			m.waiting = append(m.waiting, pod)
		default:
			m.placed = append(m.placed, pod)
			if !nodeExists(pod.Spec.NodeName) {
				m.lost = append(m.lost, pod)
			}
		}
	}
	return m
}

// lostNodes returns the names of the nodes that are gone, each once, in order.
func (m members) lostNodes() []string {
	var nodes []string
	for _, pod := range m.lost {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// lostOn names the nodes that are gone, and how many members are bound to them.
func (m members) lostOn() string {
	return fmt.Sprintf("%d of the %d that are bound %s on nodes that are gone: %s",
		len(m.lost), len(m.placed), phrase.Verb(len(m.lost), "is", "are"), phrase.Names(m.lostNodes()))
}

// onExistingNodes returns the number of members on nodes that exist.
func (m members) onExistingNodes() int { return len(m.placed) - len(m.lost) }

// places begins the events on the gang.
func (m members) places() string {
	return fmt.Sprintf("%d of %d members that the gang needs have places", m.onExistingNodes(), m.required)
}

// firstBound returns when the first of the members was bound that have a node; nil
// where that is not known.
func (m members) firstBound() *metav1.Time {
	var first *metav1.Time
	for _, pod := range m.placed {
		if at := boundAt(pod); at != nil && (first == nil || at.Before(first)) {
			first = at
		}
	}
	return first
}

// neverWhole reports whether a gang has not been whole since its first member was
// bound, by the pods alone, so that it holds after a restart, too. A gang is
// bound only when as many members exist as it requires. One that exists since
// before the first was bound, and has no node, has never had one; a replacement
// is younger. So if all that may ever have had nodes are too few, the gang was
// never whole. The exception is a gang whose minimum was raised, so none is
// counted that has been there for long: it is not of today.
func (m members) neverWhole(seen time.Time, recently time.Duration) bool {
	first := m.firstBound()
	if first == nil || seen.Sub(first.Time) > recently {
		return false
	}
	left := 0
	for _, pod := range m.waiting {
		if !first.Before(&pod.CreationTimestamp) {
			left++
		}
	}
	ever := len(m.placed) + len(m.waiting) + m.others - left
	return left > 0 && ever < m.required
}

// unbound names the member that could not be bound, and why, by the condition that
// the engine set on it; others wait because of that one. By now it may not exist any
// more.
func (m members) unbound() string {
	if len(m.waiting) == 0 {
		return "a member could not be bound, and is gone"
	}
	pod := m.waiting[0]
	for _, other := range m.waiting {
		if _, c := podutil.GetPodCondition(&other.Status, corev1.PodScheduled); c != nil && c.Reason == corev1.PodReasonSchedulerError {
			return fmt.Sprintf("pod %s could not be bound: %s", other.Name, c.Message)
		}
	}
	return fmt.Sprintf("pod %s could not be bound", pod.Name)
}

// boundAt returns when a pod was bound; nil where it has no such condition.
func boundAt(pod *corev1.Pod) *metav1.Time {
	if _, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return &c.LastTransitionTime
	}
	return nil
}

// state is the controller's memory of a gang.
type state struct {
	whole    []types.UID // the members that had nodes when it was last seen whole
	recorded bool        // the claims have these
	since    time.Time   // since when it is seen whole
	// starters are the members with which it was first seen whole, all of them on nodes that exist. What comes after one of them was lost is a replacement.
	starters []types.UID
	// partial are the members that had nodes when it was found that it was never
	// whole. The evidence may be gone later: a member that could not be bound is
	// replaced by a younger one, and all become old.
	partial []types.UID
	below   time.Time // since when it is below its minimum, or could not be evicted; zero if it is not
	first   time.Time // since when it is below its minimum
	// spent is for how long members had been in flight by below.
	spent        time.Duration
	lastReported string      // the newest event on it
	evicting     bool        // its members are being evicted
	begun        bool        // some of them were
	rollback     bool        // because it was never whole
	refused      bool        // its members could not be evicted when that was tried
	evictions    int         // how often it was evicted since it was whole
	owners       []types.UID // of its pods then
	gone         time.Time   // since when it has no pods; zero if it has
}

// neverWhole reports whether a gang has not been whole since its first member was
// bound; see [members.neverWhole]. Once that was seen while no member was in flight it
// stays so until the gang is whole, has no nodes, or another member got one: then
// it may have been whole for a moment.
func (s *state) neverWhole(m members, pods []*corev1.Pod, flying bool, recently time.Duration) bool {
	among := func(those []types.UID) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool { return slices.Contains(those, pod.UID) }
	}
	// Another gang of the same name may have come without a moment in between.
	if slices.ContainsFunc(pods, among(s.whole)) {
		return false
	}
	if m.neverWhole(s.first, recently) {
		if !flying {
			s.partial = gang.UIDs(m.placed)
		}
		return true
	}
	unknown := slices.DeleteFunc(slices.Clone(m.placed), among(s.partial))
	return len(unknown) == 0
}

// stabilizationWindow is for how long a gang that is seen whole may turn out not to be: watches
// of pods and of nodes are two, and a node may be gone of which that is not known yet.
const stabilizationWindow = 2 * pollInterval

// boundToDeletedNodes reports whether a gang has as many members bound as it needs, and some of
// them to nodes that are gone: one whose node was deleted while they were being bound.
// No controller moves such members, and after a while they are deleted. A gang that has been
// whole, or has started longer than recently ago, has lost members: so has one whose
// replacement is bound to such a node.
func (s *state) boundToDeletedNodes(m members, now time.Time, recently time.Duration) bool {
	first := m.firstBound()
	return len(m.lost) > 0 && len(m.placed) >= m.required && m.onExistingNodes() < m.required &&
		(s.since.IsZero() || now.Sub(s.since) <= stabilizationWindow) && first != nil && now.Sub(first.Time) <= recently &&
		!slices.ContainsFunc(m.lost, func(pod *corev1.Pod) bool { return s.replaces(pod, first) })
}

// replaces reports whether a member has come after the gang was whole, the first of whose members was bound at a time.
func (s *state) replaces(pod *corev1.Pod, first *metav1.Time) bool {
	return first.Before(&pod.CreationTimestamp) || len(s.starters) > 0 && !slices.Contains(s.starters, pod.UID)
}

// start returns the starters of a gang that is whole. Members may be seen one after the other: those that come while all that were seen are there count, too.
func (s *state) start(m members) []types.UID {
	placed := gang.UIDs(m.placed)
	left := func(uid types.UID) bool { return !slices.Contains(placed, uid) }
	if len(m.lost) > 0 || slices.ContainsFunc(s.starters, left) {
		return s.starters
	}
	return placed
}

// resetForNewOwners compares the owners of the pods with those of the last eviction. A job of the
// same name does not inherit the evictions of an earlier one.
func (s *state) resetForNewOwners(pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	s.gone = time.Time{}
	if now := owners(pods); s.evictions > 0 && !s.evicting && len(now) > 0 && !slices.ContainsFunc(now, func(uid types.UID) bool { return slices.Contains(s.owners, uid) }) {
		s.evictions = 0
	}
}

// owners returns the controllers of the pods that have not ended, each once; a pod
// without one has the empty UID.
func owners(pods []*corev1.Pod) []types.UID {
	var all []types.UID
	for _, pod := range pods {
		if podutil.IsPodTerminal(pod) {
			continue
		}
		var uid types.UID
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			uid = owner.UID
		}
		if !slices.Contains(all, uid) {
			all = append(all, uid)
		}
	}
	return all
}

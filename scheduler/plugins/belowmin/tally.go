package belowmin

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tally is how the members of a gang stand.
type tally struct {
	need    int
	placed  []*corev1.Pod // have a node, and keep it
	waiting []*corev1.Pod // have none
	others  int           // leave, or have failed
}

func count(pods []*corev1.Pod, need int32) tally {
	t := tally{need: int(need)}
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded: // perhaps of an earlier gang of that name
		case pod.Status.Phase == corev1.PodFailed, pod.DeletionTimestamp != nil:
			t.others++
		case pod.Spec.NodeName == "":
			t.waiting = append(t.waiting, pod)
		default:
			t.placed = append(t.placed, pod)
		}
	}
	return t
}

// neverWhole tells a gang that has not been whole since its first member was
// bound, from the pods alone, so that it holds after a restart, too. A gang is
// bound only when as many members exist as it needs. One that exists since
// before the first was bound, and has no place, has never had one; a replacement
// is younger. So if all that may ever have had places are too few, the gang was
// never whole. The exception is a gang whose minimum was raised, so none is
// counted that has been there for long: it is not of today.
func (t tally) neverWhole(seen time.Time, recently time.Duration) bool {
	var first *metav1.Time
	for _, pod := range t.placed {
		if at := boundAt(pod); at != nil && (first == nil || at.Before(first)) {
			first = at
		}
	}
	if first == nil || seen.Sub(first.Time) > recently {
		return false
	}
	left := 0
	for _, pod := range t.waiting {
		if !first.Before(&pod.CreationTimestamp) {
			left++
		}
	}
	ever := len(t.placed) + len(t.waiting) + t.others - left
	return left > 0 && ever < t.need
}

// unbound says which member could not be bound, and why. The engine says it of the
// member; others wait because of that one. By now it may not exist any more.
func (t tally) unbound() string {
	if len(t.waiting) == 0 {
		return "a member could not be bound, and is gone"
	}
	pod := t.waiting[0]
	for _, other := range t.waiting {
		if c := scheduled(other); c != nil && c.Reason == corev1.PodReasonSchedulerError {
			return fmt.Sprintf("pod %s could not be bound: %s", other.Name, c.Message)
		}
	}
	return fmt.Sprintf("pod %s could not be bound", pod.Name)
}

// scheduled is the condition in which a pod says whether it has a node, and if
// not, why; nil where it does not say.
func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

// boundAt is when a pod was bound; nil where the pod does not say.
func boundAt(pod *corev1.Pod) *metav1.Time {
	if c := scheduled(pod); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return &c.LastTransitionTime
	}
	return nil
}

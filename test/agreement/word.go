package agreement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Word is what the scheduler made of a gang.
type Word struct {
	// Members is how many pods the gang has, Bound how many of them have a node, Refused how many it found no node for, and
	// Waiting how many it says wait for others of the gang.
	Members, Bound, Refused, Waiting int
	// Messages are what it said of the pods without a node, each once, sorted.
	Messages []string
}

// waiting is the reason that the scheduler gives for pods of gangs that it cannot try.
const waiting = "GangWaiting"

// Hear reads the scheduler's word off the pods of a gang.
func Hear(pods []*corev1.Pod) Word {
	w := Word{Members: len(pods)}
	said := map[string]bool{}
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			w.Bound++
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
				continue
			}
			switch c.Reason {
			case corev1.PodReasonUnschedulable, corev1.PodReasonSchedulerError:
				w.Refused++
			case waiting:
				w.Waiting++
			default:
				continue // not looked at yet
			}
			said[c.Reason+": "+c.Message] = true
		}
	}
	w.Messages = slices.Sorted(maps.Keys(said))
	return w
}

// Final reports whether the scheduler has spoken of every pod, and not bound a part that is of no use.
func (w Word) Final(minimum int32) bool {
	return w.Bound+w.Refused == w.Members && (w.Bound == 0 || int32(w.Bound) >= minimum)
}

// String implements fmt.Stringer.
func (w Word) String() string {
	return fmt.Sprintf("%d of %d bound, %d refused, %d waiting: %s", w.Bound, w.Members, w.Refused, w.Waiting, strings.Join(w.Messages, " | "))
}

// Topics are what the scheduler's messages about nodes are about, sorted; resources are one topic.
func (w Word) Topics() []string {
	found := map[string]bool{}
	for _, m := range w.Messages {
		r, _ := heard(m)
		for topic := range r {
			topic, _, _ = strings.Cut(topic, " ")
			found[topic] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

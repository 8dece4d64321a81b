package agreement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Outcome is what the scheduler did with a gang: how many pods it bound or refused, and the messages of their conditions.
type Outcome struct {
	// Members is how many pods the gang has, Bound how many of them have a node, Refused how many it found no node for, and
	// Waiting how many it reports as waiting for others of the gang.
	Members, Bound, Refused, Waiting int
	// Messages are the condition messages of the pods without a node, each once, sorted.
	Messages []string
}

// waiting is the reason that the scheduler gives for pods of gangs that it cannot try.
const waiting = "GangWaiting"

// ReadOutcome reads the scheduler's outcome from the conditions of a gang's pods.
func ReadOutcome(pods []*corev1.Pod) Outcome {
	w := Outcome{Members: len(pods)}
	messages := map[string]bool{}
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
			messages[c.Reason+": "+c.Message] = true
		}
	}
	w.Messages = slices.Sorted(maps.Keys(messages))
	return w
}

// Final reports whether every pod is bound or has a condition, and no part below the minimum is bound.
func (w Outcome) Final(minimum int32) bool {
	return w.Bound+w.Refused == w.Members && (w.Bound == 0 || int32(w.Bound) >= minimum)
}

// String implements fmt.Stringer.
func (w Outcome) String() string {
	return fmt.Sprintf("%d of %d bound, %d refused, %d waiting: %s", w.Bound, w.Members, w.Refused, w.Waiting, strings.Join(w.Messages, " | "))
}

// Topics are what the scheduler's messages about nodes are about, sorted; resources are one topic.
func (w Outcome) Topics() []string {
	found := map[string]bool{}
	for _, m := range w.Messages {
		r, _ := parseRejections(m)
		for topic := range r {
			topic, _, _ = strings.Cut(topic, " ")
			found[topic] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

package policy

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Annotation on the object of a gang, or where it has none on its pods, says
// what becomes of the gang when it stays below its minimum.
const Annotation = "gangctl.dev/below-min-policy"

// Choice is what becomes of a gang that ran and stays below its minimum.
type Choice string

const (
	// Hold lets the members that are left go on. The places of the others are
	// kept for a time.
	Hold Choice = "hold"
	// Evict takes the places of all members, and has the gang wait as a whole.
	Evict Choice = "evict"
	// Ignore treats the members as if they were in no gang: no place is kept and
	// nobody is evicted.
	Ignore Choice = "ignore"
)

func (c Choice) known() bool { return c == Hold || c == Evict || c == Ignore }

// Of returns what a gang chose, or what the configuration says for it. A value
// that is not known is returned as doubt, and does not count.
func (c *Controller) Of(key gang.Key) (choice Choice, doubt string) {
	pods := c.Gangs.Pods(key)
	choice = c.args(pods).BelowMin
	for _, text := range c.annotations(key, pods) {
		if chosen := Choice(text); chosen.known() {
			return chosen, ""
		}
		return choice, text
	}
	return choice, ""
}

// annotations are the values that a gang has, the one that counts first.
func (c *Controller) annotations(key gang.Key, pods []*corev1.Pod) (values []string) {
	if _, u, ok := c.Objects.Get(key); ok && u != nil {
		if text, ok := u.GetAnnotations()[Annotation]; ok {
			values = append(values, text)
		}
	}
	for _, pod := range pods {
		if text, ok := pod.Annotations[Annotation]; ok {
			values = append(values, text)
		}
	}
	return values
}

// args are those of the profile of a gang's pods.
func (c *Controller) args(pods []*corev1.Pod) Args {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range pods {
		if a, ok := c.profiles[pod.Spec.SchedulerName]; ok {
			return a
		}
	}
	return DefaultArgs()
}

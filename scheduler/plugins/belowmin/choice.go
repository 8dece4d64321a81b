package belowmin

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
	a, _ := c.args(pods)
	choice = a.BelowMin
	text, ok := c.annotation(key, pods)
	switch {
	case !ok:
		return choice, ""
	case Choice(text).known():
		return Choice(text), ""
	}
	return choice, text
}

// annotation is the value that counts: the object's, or that of the first pod
// that has one.
func (c *Controller) annotation(key gang.Key, pods []*corev1.Pod) (value string, ok bool) {
	if _, u, exists := c.Objects.Get(key); exists && u != nil {
		if value, ok = u.GetAnnotations()[Annotation]; ok {
			return value, true
		}
	}
	for _, pod := range pods {
		if value, ok = pod.Annotations[Annotation]; ok {
			return value, true
		}
	}
	return "", false
}

// args are those of the profile of a gang's pods; ok is false for the defaults,
// where the profile is without the plugin.
func (c *Controller) args(pods []*corev1.Pod) (a Args, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range pods {
		if a, ok = c.profiles[pod.Spec.SchedulerName]; ok {
			return a, true
		}
	}
	return DefaultArgs(), false
}

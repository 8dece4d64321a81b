package gangcache

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// Lack is what keeps a gang from being tried; without a text it is nothing.
type Lack struct {
	// Code is that of why-pending, Text the message to the users of the gang.
	Code answer.Code
	Text string
	// OfRole is true where a role has too few pods.
	OfRole bool
}

// Incomplete returns the text of Lack.
func (c *Cache) Incomplete(key gang.Key) string { return c.Lack(key).Text }

// Lack returns why a gang cannot be tried at all: its object is missing or
// unreadable, too few of its pods exist, some are gated, or what they claim does not exist. The gang takes no
// resources then, and the engine, which parks such pods, reports nothing. Nothing
// means that the engine tries the gang.
func (c *Cache) Lack(key gang.Key) Lack {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.gangs[key]
	if e == nil {
		return Lack{}
	}
	group, lack := e.compose(c, key)
	if group == nil {
		return lack
	}
	if lack := e.incomplete(c, key, group); lack.Text != "" {
		return lack
	}
	return e.unclaimed(c, key)
}

// incomplete is what a gang lacks of its members.
func (e *entry) incomplete(c *Cache, key gang.Key, group *schedulingv1beta1.PodGroup) Lack {
	if group.Spec.SchedulingPolicy.Gang == nil {
		return Lack{}
	}
	required, _ := e.minCount(c, key)
	completed := e.completed()
	have := int32(len(e.pods[live])) + completed
	text := waits(key) + exist(have, required)
	if completed > 0 {
		text += fmt.Sprintf(", %d of them completed", completed)
	}
	if have < required {
		return Lack{Code: answer.BelowQuorum, Text: text + c.foreignMembers(key)}
	}
	gated, pod := e.gated()
	if gated == 0 || have-gated >= required && !key.Dialect.GatedTogether() {
		return Lack{}
	}
	text += fmt.Sprintf(", %d gated: pod %s by %s", gated, pod.Name, pod.Spec.SchedulingGates[0].Name)
	if have-gated >= required {
		text += "; " + gang.WhyGatedTogether
	}
	return Lack{Code: answer.SchedulingGated, Text: text}
}

// gated counts the members that have scheduling gates, and returns the first.
func (e *entry) gated() (n int32, first *corev1.Pod) {
	for _, m := range e.pods[live] {
		if len(m.pod.Spec.SchedulingGates) == 0 {
			continue
		}
		n++
		if first == nil || compare(m.pod, first) < 0 {
			first = m.pod
		}
	}
	return n, first
}

// Ambiguous returns what about a gang's declaration its users should look at,
// though nothing waits for it: an object that cannot be read any more, members
// that name gangs in several ways, of which one counts, a PriorityClass that does
// not exist, a rule that is not applied, members with several names of ours. Empty is the rule.
func (c *Cache) Ambiguous(key gang.Key) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.gangs[key]
	if e == nil {
		return ""
	}
	var first *podInfo
	var rival gang.Key
	for _, m := range e.pods[live] {
		if other, ok := c.rival(m); ok && (first == nil || compare(m.pod, first.pod) < 0) {
			first, rival = m, other
		}
	}
	if first != nil {
		return fmt.Sprintf("pod %s names gangs in several ways: %s %s counts, %s %s does not", first.pod.Name, key.Dialect, key.Name, rival.Dialect, rival.Name)
	}
	if why := e.ambiguousObject(c, key); why != "" {
		return why
	}
	return e.ambiguousScheduler()
}

// ambiguousScheduler reports a member that has another name of ours than its gang is placed under.
func (e *entry) ambiguousScheduler() string {
	if e.alike.schedulers() < 2 {
		return ""
	}
	var first *corev1.Pod
	for _, m := range e.pods[live] {
		if m.pod.Spec.SchedulerName != e.scheduler && (first == nil || compare(m.pod, first) < 0) {
			first = m.pod
		}
	}
	return fmt.Sprintf("its members have several schedulerNames: all are placed by the profile %s, which the oldest has; pod %s has %s", e.scheduler, first.Name, first.Spec.SchedulerName)
}

func (e *entry) ambiguousObject(c *Cache, key gang.Key) string {
	object := e.object()
	if object == nil || len(e.pods[live]) == 0 {
		return e.unapplied()
	}
	switch {
	case object.Unreadable != nil && !e.waiting():
		_, why := e.minCount(c, key)
		return why + "; members to come will wait"
	case object.Unreadable != nil:
		return "" // Incomplete reports it
	}
	if object.Priority == nil && object.PriorityClass != "" {
		if why := e.ambiguousPriority(c, object); why != "" {
			return why
		}
	}
	rules := object.Unapplied
	if object.Parent != "" && !PlacesTrees() {
		rules = append(slices.Clip(rules), gang.UnappliedRule{Text: "that it is a part of CompositePodGroup " + object.Parent + " (the gate of the scheduler is off, which is set when it starts)"})
	}
	return unapplied(rules)
}

// unapplied reports rules that the pods of a gang without an object state and this scheduler does not know.
func (e *entry) unapplied() string {
	for _, m := range e.pods[live] {
		if text := unapplied(m.unapplied); text != "" {
			return text
		}
	}
	return ""
}

// unapplied reports rules that this scheduler does not know.
func unapplied(rules []gang.UnappliedRule) string {
	var texts []string
	for _, rule := range rules {
		texts = append(texts, rule.Text)
	}
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0] + " is not applied"
	}
	return strings.Join(texts, ", and ") + " are not applied"
}

// ambiguousPriority reports a PriorityClass of a group object that does not give the gang its priority.
func (e *entry) ambiguousPriority(c *Cache, object *Object) string {
	terms, exists := c.classes[object.PriorityClass]
	switch {
	case !exists:
		return fmt.Sprintf("PriorityClass %s not found: the gang has the lowest priority of its pods, %d", object.PriorityClass, e.terms.Priority)
	case terms.Priority != e.terms.Priority:
		return fmt.Sprintf("PriorityClass %s of the %s is not applied: the gang has the lowest priority of its pods, %d", object.PriorityClass, object.GroupKind.Kind, e.terms.Priority)
	}
	return ""
}

// waiting reports whether a member has no node.
func (e *entry) waiting() bool {
	for _, m := range e.pods[live] {
		if m.pod.Spec.NodeName == "" {
			return true
		}
	}
	return false
}

// rival returns another gang that a member names. Dialects that share a label or
// annotation do not contradict each other unless two objects exist.
func (c *Cache) rival(m *podInfo) (gang.Key, bool) {
	named := m.membership.Keys()
	if m.membership.Field != (gang.Key{}) {
		named = gang.MembershipOf(withoutField(m.pod), c.precedence(m.pod.Spec.SchedulerName)).Keys()
	}
	mine := c.gangs[m.key].object()
	_, light := labels.NameOf(m.pod)
	for _, other := range named {
		if other == m.key {
			continue
		}
		theirs := (*Object)(nil)
		if e := c.gangs[other]; e != nil {
			theirs = e.object()
		}
		switch {
		case other.Name != m.key.Name, m.key.Dialect == gang.Native,
			mine != nil && theirs != nil && mine.UID != theirs.UID,
			mine != nil && light && other.Dialect == gang.Labels && m.key.Dialect != gang.Koordinator:
			return other, true
		}
	}
	return gang.Key{}, false
}

func withoutField(pod *corev1.Pod) *corev1.Pod {
	bare := *pod
	bare.Spec.SchedulingGroup = nil
	return &bare
}

func waits(key gang.Key) string {
	return fmt.Sprintf("gang %s/%s waits for its pods: ", key.Namespace, key.Name)
}

func exist(have, required int32) string { return fmt.Sprintf("%d/%d pods exist", have, required) }

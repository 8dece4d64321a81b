package gangcache

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// Object returns the API object that declares a gang; ok is false where there
// is none.
func (r *Roster) Object(key gang.Key) (object Object, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.gangs[key]; e != nil {
		if found := e.object(key.Dialect); found != nil {
			return *found, true
		}
	}
	return Object{}, false
}

// Need is how many members a gang declares that it needs; 0 where that is not
// known.
func (r *Roster) Need(key gang.Key) int32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.gangs[key]; e != nil {
		need, _ := e.need(r, key)
		return need
	}
	return 0
}

// Incomplete says why a gang cannot be tried at all: its object is missing or
// unreadable, too few of its pods exist, or some are gated. The gang holds then
// nothing, and the engine, which parks such pods, says nothing of it. Empty
// means that the engine tries it.
func (r *Roster) Incomplete(key gang.Key) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e := r.gangs[key]
	if e == nil {
		return ""
	}
	group, why := e.compose(r, key)
	if group == nil {
		return why
	}
	if group.Spec.SchedulingPolicy.Gang == nil {
		return ""
	}
	need, _ := e.need(r, key)
	completed := e.completed()
	have := int32(len(e.pods[live])) + completed
	text := waits(key) + exist(have, need)
	if completed > 0 {
		text += fmt.Sprintf(", %d of them completed", completed)
	}
	if have < need {
		return text + r.strangers(key)
	}
	if gated, pod := e.gated(); gated > 0 && have-gated < need {
		return text + fmt.Sprintf(", %d gated: pod %s by %s", gated, pod.Name, pod.Spec.SchedulingGates[0].Name)
	}
	return ""
}

// gated counts the members that somebody else holds back, and returns the first.
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

// Doubt says what about a gang's declaration its users should look at, though
// nothing waits for it: an object that cannot be read any more, members that
// name gangs in several ways, of which one counts, a PriorityClass that does not
// exist, a rule that is not heeded. Empty is the rule.
func (r *Roster) Doubt(key gang.Key) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e := r.gangs[key]
	if e == nil {
		return ""
	}
	var first *record
	var rival gang.Key
	for _, m := range e.pods[live] {
		if other, ok := r.rival(m); ok && (first == nil || compare(m.pod, first.pod) < 0) {
			first, rival = m, other
		}
	}
	if first != nil {
		return fmt.Sprintf("pod %s names gangs in several ways: %s %s counts, %s %s does not", first.pod.Name, key.Dialect, key.Name, rival.Dialect, rival.Name)
	}
	return e.objectDoubt(r, key)
}

func (e *entry) objectDoubt(r *Roster, key gang.Key) string {
	object := e.object(key.Dialect)
	if object == nil || len(e.pods[live]) == 0 {
		return ""
	}
	_, classed := r.classes[object.PriorityClass]
	switch {
	case object.Unreadable != nil && !e.waiting():
		_, why := e.need(r, key)
		return why + "; members to come will wait"
	case object.Unreadable != nil:
		return "" // Incomplete says so
	case object.Priority == nil && object.PriorityClass != "" && !classed:
		return fmt.Sprintf("PriorityClass %s not found: the gang has the highest priority of its pods, %d", object.PriorityClass, e.terms.Priority)
	case object.TopologyKey != "":
		return fmt.Sprintf("the rule that all members share one value of node label %s is not heeded", object.TopologyKey)
	}
	return ""
}

// waiting tells whether a member has no place.
func (e *entry) waiting() bool {
	for _, m := range e.pods[live] {
		if m.pod.Spec.NodeName == "" {
			return true
		}
	}
	return false
}

// rival is another gang that a member names. Dialects that share a mark are not
// at odds over it unless two objects exist.
func (r *Roster) rival(m *record) (gang.Key, bool) {
	marked := m.claims.keys()
	if m.claims.native != (gang.Key{}) {
		marked = claimsOf(withoutField(m.pod), r.orders[m.pod.Spec.SchedulerName]).keys()
	}
	mine := r.gangs[m.key].object(m.key.Dialect)
	_, light := labels.NameOf(m.pod)
	for _, other := range marked {
		if other == m.key {
			continue
		}
		theirs := (*Object)(nil)
		if e := r.gangs[other]; e != nil {
			theirs = e.object(other.Dialect)
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

func exist(have, need int32) string { return fmt.Sprintf("%d/%d pods exist", have, need) }

// Package roster knows which pods and which group objects make up which gang,
// and derives from them the virtual PodGroup that the engine schedules.
//
// A gang may be declared by an object, by labels on its pods, or by both; its
// priority is that of its members. So neither objects nor pods alone suffice,
// and the roster joins the two as they come and go, in any order.
package roster

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// Sink receives the virtual PodGroups; *virtual.Store is one.
type Sink interface {
	Set(group *schedulingv1beta1.PodGroup)
	Delete(namespace, name string)
}

// Object is what a gang's own API object says, in a dialect that has one.
type Object struct {
	UID       types.UID
	Created   metav1.Time
	MinMember int32
}

// Roster joins pods and objects into gangs. Its methods may be called from
// several goroutines; the sink sees the changes of one gang in order.
type Roster struct {
	mu    sync.Mutex
	sink  Sink
	gangs map[gang.Key]*entry
}

type entry struct {
	object  *Object
	members map[types.UID]member
}

type member struct {
	created  metav1.Time
	priority int32
	min      int32 // as declared by the member itself, 0 for none
	minErr   error
}

// New returns an empty roster that feeds the sink.
func New(sink Sink) *Roster {
	return &Roster{sink: sink, gangs: map[gang.Key]*entry{}}
}

// SetPod adds a member to a gang, or renews what is known of it.
func (r *Roster) SetPod(key gang.Key, pod *corev1.Pod) {
	m := member{created: pod.CreationTimestamp, priority: corev1helpers.PodPriority(pod)}
	if key.Dialect == gang.Labels {
		m.min, m.minErr = labels.MinAvailable(pod)
	}
	r.change(key, func(e *entry) { e.members[pod.UID] = m })
}

// DeletePod takes a member from its gang.
func (r *Roster) DeletePod(key gang.Key, uid types.UID) {
	r.change(key, func(e *entry) { delete(e.members, uid) })
}

// SetObject records the API object of a gang.
func (r *Roster) SetObject(key gang.Key, object Object) {
	r.change(key, func(e *entry) { e.object = &object })
}

// DeleteObject records that a gang has no API object any more.
func (r *Roster) DeleteObject(key gang.Key) {
	r.change(key, func(e *entry) { e.object = nil })
}

// DeleteObjects forgets the objects of a whole dialect, as when its API ceases
// to be served, and returns the gangs that had one.
func (r *Roster) DeleteObjects(dialect gang.Dialect) []gang.Key {
	r.mu.Lock()
	var keys []gang.Key
	for key, e := range r.gangs {
		if key.Dialect == dialect && e.object != nil {
			keys = append(keys, key)
		}
	}
	r.mu.Unlock()
	for _, key := range keys {
		r.DeleteObject(key)
	}
	return keys
}

// change applies one change to one gang and tells the sink what came of it.
func (r *Roster) change(key gang.Key, apply func(*entry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.gangs[key]
	if e == nil {
		e = &entry{members: map[types.UID]member{}}
		r.gangs[key] = e
	}
	apply(e)
	if e.object == nil && len(e.members) == 0 {
		delete(r.gangs, key)
	}
	group, _ := e.compose(key)
	if group == nil {
		r.sink.Delete(key.Namespace, key.VirtualName())
		return
	}
	r.sink.Set(group)
}

// Incomplete says why a gang cannot be tried at all: its object is missing,
// its minimum is unreadable, or too few of its pods exist. The gang holds then
// nothing, and the engine, which parks such pods, says nothing of it. Empty
// means that the engine tries it.
func (r *Roster) Incomplete(key gang.Key) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.gangs[key]
	if e == nil {
		return ""
	}
	group, why := e.compose(key)
	if group == nil {
		return why
	}
	if minMember := group.Spec.SchedulingPolicy.Gang.MinCount; int32(len(e.members)) < minMember {
		return fmt.Sprintf("gang %s/%s waits for its pods: %d/%d pods exist", key.Namespace, key.Name, len(e.members), minMember)
	}
	return ""
}

// compose derives the virtual PodGroup, or says why there is none.
func (e *entry) compose(key gang.Key) (group *schedulingv1beta1.PodGroup, why string) {
	// A group without members is not shown: its priority is not known yet, and
	// one that changes under a gang's first attempt fails that attempt.
	if len(e.members) == 0 {
		return nil, fmt.Sprintf("gang %s/%s has no pods", key.Namespace, key.Name)
	}
	group = &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.VirtualName()},
	}
	var minMember int32
	if key.Dialect == gang.Labels {
		group.UID = types.UID(key.String())
		group.CreationTimestamp = e.oldest()
		if minMember, why = e.declaredMin(key); minMember == 0 {
			return nil, why
		}
	} else {
		if e.object == nil {
			return nil, fmt.Sprintf("PodGroup %s/%s not found", key.Namespace, key.Name)
		}
		group.UID = e.object.UID
		group.CreationTimestamp = e.object.Created
		minMember = e.object.MinMember
	}
	priority := e.priority()
	group.Spec = schedulingv1beta1.PodGroupSpec{
		Priority: &priority,
		// The engine's default evicts members one by one, which breaks a gang.
		DisruptionMode: &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minMember},
		},
	}
	return group, ""
}

// declaredMin is the largest minimum that any member declares: members of a
// gang that is being scaled may disagree, and too few is the worse mistake.
func (e *entry) declaredMin(key gang.Key) (minMember int32, why string) {
	for _, m := range e.members {
		minMember = max(minMember, m.min)
		if m.minErr != nil {
			why = fmt.Sprintf("gang %s/%s has no minimum: %v", key.Namespace, key.Name, m.minErr)
		}
	}
	return minMember, why
}

func (e *entry) oldest() metav1.Time {
	var oldest metav1.Time
	for _, m := range e.members {
		if oldest.IsZero() || m.created.Before(&oldest) {
			oldest = m.created
		}
	}
	return oldest
}

// priority is the highest of the members', for a gang runs as one.
func (e *entry) priority() int32 {
	first := true
	var highest int32
	for _, m := range e.members {
		if first || m.priority > highest {
			first, highest = false, m.priority
		}
	}
	return highest
}

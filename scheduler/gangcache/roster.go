// Package gangcache knows which pods and which group objects make up which gang,
// and derives from them the virtual PodGroup that the engine schedules.
//
// A gang may be declared by an object, by marks on its pods, or by both, and
// which of several counts depends on what exists; its priority is that of its
// members. So neither objects nor pods alone suffice, and the roster joins the
// two as they come and go, in any order.
package gangcache

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Sink receives the virtual PodGroups; *engine.VirtualGroups is one.
type Sink interface {
	Set(group *schedulingv1beta1.PodGroup)
	Delete(namespace, name string)
}

// Change is what one event did to the gangs.
type Change struct {
	// Keys are the gangs that changed.
	Keys []gang.Key
	// Shown are the live members that the engine must be shown anew.
	Shown []types.UID
	// Terms are the virtual groups that changed their priority or preemption
	// policy. The engine must know that before it is shown the members.
	Terms []types.NamespacedName
}

// Roster joins pods and objects into gangs. Its methods may be called from
// several goroutines; the sink sees the changes of one gang in order.
type Roster struct {
	mu       sync.RWMutex
	sink     Sink
	orders   map[string][]gang.Reader // by schedulerName
	pods     cohorts
	claimed  map[gang.Key]map[*record]bool
	owned    map[ownerKey]map[*record]bool
	budgets  map[ownerKey]gang.Key
	gangs    map[gang.Key]*entry
	classes  map[string]Terms
	problems map[schema.GroupKind]string
	foreign  map[gang.Key]map[types.UID]*corev1.Pod // pods with marks that are not ours to place
}

// ownerKey identifies the controller of pods; uids are unique, but nobody may
// claim the pods of another namespace.
type ownerKey struct {
	namespace string
	uid       types.UID
}

// entry is one gang.
type entry struct {
	objects map[schema.GroupKind]Object
	pods    cohorts
	terms   Terms
}

// New returns an empty roster that feeds the sink.
func New(sink Sink) *Roster {
	return &Roster{
		sink: sink, orders: map[string][]gang.Reader{},
		pods: newCohorts(), claimed: map[gang.Key]map[*record]bool{}, owned: map[ownerKey]map[*record]bool{},
		budgets: map[ownerKey]gang.Key{}, gangs: map[gang.Key]*entry{},
		classes: map[string]Terms{}, problems: map[schema.GroupKind]string{},
		foreign: map[gang.Key]map[types.UID]*corev1.Pod{},
	}
}

// SetPod adds a pod of ours that has not ended, or renews what is known of it.
func (r *Roster) SetPod(pod *corev1.Pod) Change {
	if leaving(pod) {
		return r.change(pod.UID, pod, gone, live)
	}
	return r.change(pod.UID, pod, live, gone)
}

// DeletePod forgets a pod that SetPod added.
func (r *Roster) DeletePod(uid types.UID) Change { return r.change(uid, nil, live, gone) }

// SetEnded adds a pod of ours that has ended. One that has succeeded counts
// towards its gang's minimum: its work is done.
func (r *Roster) SetEnded(pod *corev1.Pod) Change { return r.change(pod.UID, pod, ended) }

// DeleteEnded forgets a pod that SetEnded added.
func (r *Roster) DeleteEnded(uid types.UID) Change { return r.change(uid, nil, ended) }

// change puts a pod, unless it is nil, into the first of some cohorts, and takes
// what was known of it out of all of them.
func (r *Roster) change(uid types.UID, pod *corev1.Pod, cohorts ...cohort) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{roster: r}
	for _, c := range cohorts {
		if old := r.pods[c][uid]; old != nil {
			delete(r.pods[c], uid)
			r.unclaim(old)
			t.leave(old)
		}
	}
	if pod != nil {
		rec := r.newRecord(pod, cohorts[0])
		r.pods[rec.cohort][uid] = rec
		r.claim(rec)
		t.join(rec)
	}
	return t.end()
}

// SetObject records the API object of a gang.
func (r *Roster) SetObject(key gang.Key, object Object) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{roster: r}
	e := r.entry(key)
	e.objects[object.GroupKind] = object
	t.touch(key)
	t.resolve(r.claimed[key])
	return t.end()
}

// DeleteObject records that a gang has no object of a kind any more.
func (r *Roster) DeleteObject(key gang.Key, kind schema.GroupKind) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{roster: r}
	t.deleteObject(key, kind)
	return t.end()
}

// DeleteObjects forgets all objects of a kind, as when it ceases to be served.
func (r *Roster) DeleteObjects(kind schema.GroupKind) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{roster: r}
	for _, key := range slices.Collect(maps.Keys(r.gangs)) {
		if _, ok := r.gangs[key].objects[kind]; ok {
			t.deleteObject(key, kind)
		}
	}
	return t.end()
}

// SetBudget records a PodDisruptionBudget that makes the pods of its controller
// a gang.
func (r *Roster) SetBudget(object Object) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{roster: r}
	key := object.Key
	if old, ok := r.entry(key).objects[object.GroupKind]; ok && old.Owner != object.Owner {
		t.deleteBudget(key, old)
	}
	r.entry(key).objects[object.GroupKind] = object
	owner := ownerKey{key.Namespace, object.Owner}
	r.budgets[owner] = key
	t.touch(key)
	t.resolve(r.owned[owner])
	return t.end()
}

// DeleteBudget forgets a PodDisruptionBudget; one that declared no gang is none
// to forget.
func (r *Roster) DeleteBudget(key gang.Key, kind schema.GroupKind) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{roster: r}
	if e := r.gangs[key]; e != nil {
		if old, ok := e.objects[kind]; ok {
			t.deleteBudget(key, old)
		}
	}
	return t.end()
}

// SetClass records a PriorityClass, or with ok false that there is none of that
// name.
func (r *Roster) SetClass(name string, terms Terms, ok bool) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok {
		r.classes[name] = terms
	} else {
		delete(r.classes, name)
	}
	t := turn{roster: r}
	for key, e := range r.gangs {
		if object := e.object(key.Dialect); object != nil && object.PriorityClass == name {
			t.touch(key)
		}
	}
	return t.end()
}

// SetProblem records why the objects of a kind cannot be read; empty if they can.
func (r *Roster) SetProblem(kind schema.GroupKind, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem == "" {
		delete(r.problems, kind)
	} else {
		r.problems[kind] = problem
	}
}

// entry returns the gang of a key, which is made if need be.
func (r *Roster) entry(key gang.Key) *entry {
	e := r.gangs[key]
	if e == nil {
		e = &entry{objects: map[schema.GroupKind]Object{}, pods: newCohorts()}
		r.gangs[key] = e
	}
	return e
}

// readers returns those of a dialect's order for a schedulerName.
func (r *Roster) readers(schedulerName string) []gang.Reader {
	readers, ok := r.orders[schedulerName]
	if !ok {
		readers = order(schedulerName)
		r.orders[schedulerName] = readers
	}
	return readers
}

// Pods lists the pods of a gang, those included that have ended or leave, by name.
func (r *Roster) Pods(key gang.Key) []*corev1.Pod {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e := r.gangs[key]
	if e == nil {
		return nil
	}
	var pods []*corev1.Pod
	for _, c := range []cohort{ended, live, gone} {
		for uid, rec := range e.pods[c] {
			// One that ended a moment ago may be known in both ways.
			if c == ended || e.pods[ended][uid] == nil {
				pods = append(pods, rec.pod)
			}
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return compare(a, b) })
	return pods
}

// Package gangcache knows which pods and which group objects make up which gang,
// and derives from them the virtual PodGroup that the engine schedules.
//
// A gang may be declared by an object, by labels or annotations of its pods, or by
// both, and which of several declarations counts depends on what exists; its
// priority is that of its members. So neither objects nor pods alone suffice, and
// the cache joins the two as they come and go, in any order.
package gangcache

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// Sink receives the virtual PodGroups; *engine.VirtualGroups is one.
type Sink interface {
	Set(group *schedulingv1beta1.PodGroup)
	Delete(namespace, name string)
}

// Change is the effect of one event on the gangs.
type Change struct {
	// Keys are the gangs that changed.
	Keys []gang.Key
	// Members are the live members of which the engine must be notified again.
	Members []types.UID
	// TermsChanged are the virtual groups whose priority or preemption policy changed.
	// The engine must know that before it is notified of the members.
	TermsChanged []types.NamespacedName
}

// Cache joins pods and objects into gangs. Its methods may be called from
// several goroutines; the sink sees the changes of one gang in order.
type Cache struct {
	mu          sync.RWMutex
	sink        Sink
	precedences map[string]gang.Precedence // by schedulerName; that of all names that no dialect knows is under the empty one
	ofForeign   map[string]gang.Precedence // the same for pods of other schedulers
	schedulers  sets.Set[string]           // the scheduler names that dialects know
	kinds       map[gang.Dialect][]schema.GroupKind
	pods        podSets
	named       map[gang.Key]map[*podInfo]bool      // the pods that name a gang, whether or not it counts for them
	owned       map[gang.Identity]map[*podInfo]bool // the pods of a controller
	budgets     map[gang.Identity][]gang.Key        // of a controller, by name: the first one counts
	gangs       map[gang.Key]*entry
	classes     map[string]gang.Terms
	priority    Priority
	problems    map[schema.GroupKind]string
	foreign     map[gang.Key]map[types.UID]*corev1.Pod // pods that name a gang and are another scheduler's
	// missingClaim describes what a pod claims and does not exist; empty for nothing. It is nil where claims are not read.
	missingClaim func(*corev1.Pod) string
	claiming     map[string]map[*podInfo]bool // the pods that have claims for devices, by namespace
}

// entry is one gang.
type entry struct {
	kinds   []schema.GroupKind           // those of the objects that may declare it, in the order in which they count
	objects map[schema.GroupKind]*Object // never changed
	pods    podSets
	alike   alike // of the live pods
	terms   gang.Terms
	// scheduler is the name of ours by whose profile all members are placed: the engine requires one of a group.
	scheduler string
}

// Priority is the source of the priority of a gang with a group object.
type Priority string

// The sources of a gang's priority. No admission checks the PriorityClass that a group object of an operator names, so it counts only
// where the administrator trusts whoever may write such objects.
const (
	MemberPriority Priority = "members"
	ObjectPriority Priority = "object"
)

// New returns an empty cache that feeds the sink.
func New(sink Sink, priority Priority) *Cache {
	return &Cache{
		sink: sink, precedences: map[string]gang.Precedence{}, ofForeign: map[string]gang.Precedence{}, schedulers: sets.New(dialect.Schedulers()...), kinds: kindsOfObjects(),
		pods: newPodSets(), named: map[gang.Key]map[*podInfo]bool{}, owned: map[gang.Identity]map[*podInfo]bool{},
		budgets: map[gang.Identity][]gang.Key{}, gangs: map[gang.Key]*entry{},
		classes: map[string]gang.Terms{}, priority: priority, problems: map[schema.GroupKind]string{},
		foreign: map[gang.Key]map[types.UID]*corev1.Pod{}, claiming: map[string]map[*podInfo]bool{},
	}
}

// SetPod adds or updates a pod of ours that has not ended.
func (c *Cache) SetPod(pod *corev1.Pod) Change {
	if isLeaving(pod) {
		return c.setPod(pod.UID, pod, leaving, live)
	}
	return c.setPod(pod.UID, pod, live, leaving)
}

// DeletePod removes a pod that SetPod added.
func (c *Cache) DeletePod(uid types.UID) Change { return c.setPod(uid, nil, live, leaving) }

// SetEnded adds a pod of ours that has ended. One that has succeeded counts
// towards its gang's minimum: its work is done.
func (c *Cache) SetEnded(pod *corev1.Pod) Change { return c.setPod(pod.UID, pod, ended) }

// DeleteEnded removes a pod that SetEnded added.
func (c *Cache) DeleteEnded(uid types.UID) Change { return c.setPod(uid, nil, ended) }

// setPod removes a pod from the sets of these phases and, unless it is nil, adds it
// to the first of them.
func (c *Cache) setPod(uid types.UID, pod *corev1.Pod, phases ...podPhase) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod != nil && phases[0] == live {
		if change, ok := c.update(pod); ok {
			return change
		}
	}
	b := batch{cache: c}
	for _, phase := range phases {
		if old := c.pods[phase][uid]; old != nil {
			delete(c.pods[phase], uid)
			c.unindex(old)
			b.leave(old)
		}
	}
	if pod != nil {
		info := c.newPodInfo(pod, phases[0])
		c.pods[info.phase][uid] = info
		c.index(info)
		b.join(info)
	}
	return b.end()
}

// SetObject records the API object of a gang.
func (c *Cache) SetObject(key gang.Key, object Object) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := batch{cache: c}
	e := c.entry(key)
	e.objects[object.GroupKind] = &object
	b.touch(key)
	b.resolve(c.named[key])
	return b.end()
}

// DeleteObject records that a gang has no object of a kind any more.
func (c *Cache) DeleteObject(key gang.Key, kind schema.GroupKind) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := batch{cache: c}
	b.deleteObject(key, kind)
	return b.end()
}

// DeleteObjects removes all objects of a kind, as when it is not served any more.
func (c *Cache) DeleteObjects(kind schema.GroupKind) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := batch{cache: c}
	for _, key := range slices.Collect(maps.Keys(c.gangs)) {
		if _, ok := c.gangs[key].objects[kind]; ok {
			b.deleteObject(key, kind)
		}
	}
	return b.end()
}

// SetBudget records a PodDisruptionBudget that makes the pods of its controller
// a gang.
func (c *Cache) SetBudget(object Object) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := batch{cache: c}
	key := object.Key
	if old, ok := c.entry(key).objects[object.GroupKind]; ok && old.Owner != object.Owner {
		b.deleteBudget(key, old)
	}
	c.entry(key).objects[object.GroupKind] = &object
	owner := gang.Identity{Namespace: key.Namespace, UID: object.Owner}
	if at, known := slices.BinarySearchFunc(c.budgets[owner], key, byName); !known {
		c.budgets[owner] = slices.Insert(c.budgets[owner], at, key)
	}
	b.touch(key)
	b.resolve(c.owned[owner])
	return b.end()
}

// DeleteBudget removes a PodDisruptionBudget. One that declared no gang changes
// nothing.
func (c *Cache) DeleteBudget(key gang.Key, kind schema.GroupKind) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := batch{cache: c}
	if e := c.gangs[key]; e != nil {
		if old, ok := e.objects[kind]; ok {
			b.deleteBudget(key, old)
		}
	}
	return b.end()
}

// SetClass records a PriorityClass, or with ok false that there is none of that
// name.
func (c *Cache) SetClass(name string, terms gang.Terms, ok bool) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.classes[name] = terms
	} else {
		delete(c.classes, name)
	}
	b := batch{cache: c}
	for key, e := range c.gangs {
		if object := e.object(); object != nil && object.PriorityClass == name {
			b.touch(key)
		}
	}
	return b.end()
}

// SetProblem records why the objects of a kind cannot be read; empty if they can.
func (c *Cache) SetProblem(kind schema.GroupKind, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if problem == "" {
		delete(c.problems, kind)
	} else {
		c.problems[kind] = problem
	}
}

// SetForeign records a pod of another scheduler. If it names a gang of ours, that
// gang waits for a member that never comes, and must report it. Pods that name no
// gang cost nothing.
func (c *Cache) SetForeign(pod *corev1.Pod) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := gang.MembershipOf(pod, c.foreignPrecedence(pod.Spec.SchedulerName)).Keys()
	for _, key := range keys {
		if c.foreign[key] == nil {
			c.foreign[key] = map[types.UID]*corev1.Pod{}
		}
		c.foreign[key][pod.UID] = pod
	}
	return Change{Keys: c.known(keys)}
}

// DeleteForeign removes a pod that SetForeign recorded.
func (c *Cache) DeleteForeign(pod *corev1.Pod) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := gang.MembershipOf(pod, c.foreignPrecedence(pod.Spec.SchedulerName)).Keys()
	for _, key := range keys {
		if delete(c.foreign[key], pod.UID); len(c.foreign[key]) == 0 {
			delete(c.foreign, key)
		}
	}
	return Change{Keys: c.known(keys)}
}

// known returns those of the gangs that have pods or objects of ours.
func (c *Cache) known(keys []gang.Key) (known []gang.Key) {
	for _, key := range keys {
		if c.gangs[key] != nil {
			known = append(known, key)
		}
	}
	return known
}

// foreignMembers describes the members of another scheduler; empty for none.
func (c *Cache) foreignMembers(key gang.Key) string {
	var first *corev1.Pod
	for _, pod := range c.foreign[key] {
		if first == nil || compare(pod, first) < 0 {
			first = pod
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf(", %d of another scheduler: pod %s has schedulerName %s", len(c.foreign[key]), first.Name, first.Spec.SchedulerName)
}

// entry returns the gang of a key, and creates it if need be.
func (c *Cache) entry(key gang.Key) *entry {
	e := c.gangs[key]
	if e == nil {
		e = &entry{kinds: c.kinds[key.Dialect], objects: map[schema.GroupKind]*Object{}, pods: newPodSets(), alike: alike{}}
		c.gangs[key] = e
	}
	return e
}

// kindsOfObjects are those that declare gangs, by dialect.
func kindsOfObjects() map[gang.Dialect][]schema.GroupKind {
	kinds := map[gang.Dialect][]schema.GroupKind{}
	for _, reader := range Readers() {
		for _, kind := range reader.Kinds {
			kinds[reader.Dialect] = append(kinds[reader.Dialect], kind.GroupKind)
		}
	}
	return kinds
}

// precedence returns that of the dialects for pods of ours of a schedulerName, foreignPrecedence for those of another scheduler.
func (c *Cache) precedence(schedulerName string) gang.Precedence {
	return c.remembered(c.precedences, schedulerName, dialect.OurPrecedence)
}

func (c *Cache) foreignPrecedence(schedulerName string) gang.Precedence {
	return c.remembered(c.ofForeign, schedulerName, dialect.Precedence)
}

func (c *Cache) remembered(by map[string]gang.Precedence, schedulerName string, of func([]gang.Reader, string) gang.Precedence) gang.Precedence {
	if !c.schedulers.Has(schedulerName) {
		schedulerName = "" // names are the users' to write, and not to be remembered one by one
	}
	p, ok := by[schedulerName]
	if !ok {
		p = of(Readers(), schedulerName)
		by[schedulerName] = p
	}
	return p
}

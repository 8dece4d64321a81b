package engine

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// PodView is the pod informer as the engine sees it: each pod of ours points to the
// virtual PodGroup of its gang and has the gang's priority.
//
// The gang may change without the pod: an object appears that the pod names, or a
// member with a higher priority joins. So events come from two sources, and the engine
// sees them in one order: the gang cache first, then the engine, under one lock. A
// pod whose gang changed while it waits is shown as deleted and added: in upstream's
// API the gang of a pod never changes, and the engine's caches would lose the pod. One that is
// being bound is shown in the gang that it was given its node with until it is bound, or is not: the engine
// takes one that is deleted off its node at once, and the binding goes on.
type PodView struct {
	cache.SharedIndexInformer
	gangs       *gangcache.Cache
	assumed     *AssumedPods
	ours        func(*corev1.Pod) bool
	touch       func(gang.Key)
	waitHandled func([]types.NamespacedName)

	mu       sync.Mutex
	handlers handlerList
	shown    map[types.UID]shownPod
	withheld map[types.UID]*withheldPod
	delay    time.Duration // for which a pod is withheld
}

// shownPod is a pod of ours, and the copy of it that the engine was shown last.
type shownPod struct{ pod, view *corev1.Pod }

// NewPodView returns the view of pods. Assumed are those that are being bound; ours are those that the scheduler places.
// Touch is called with the gangs that changed. WaitHandled waits until the engine knows
// the newest of these virtual groups. Delay is how long a pod is withheld that may
// become a member of a gang.
func NewPodView(pods cache.SharedIndexInformer, gangs *gangcache.Cache, assumed *AssumedPods, ours func(*corev1.Pod) bool, touch func(gang.Key), waitHandled func([]types.NamespacedName), delay time.Duration) *PodView {
	return &PodView{
		SharedIndexInformer: pods, gangs: gangs, assumed: assumed, ours: ours, touch: touch,
		waitHandled: waitHandled, shown: map[types.UID]shownPod{}, withheld: map[types.UID]*withheldPod{}, delay: delay,
	}
}

// AddEventHandler implements cache.SharedInformer. All handlers must be there
// before the informer runs.
func (v *PodView) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (v *PodView) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.handlers.add("pods", v.SharedIndexInformer, podEvents{v}, handler, options)
}

// GetIndexer implements cache.SharedIndexInformer; the engine's listers read it.
func (v *PodView) GetIndexer() cache.Indexer {
	return viewIndexer{v.SharedIndexInformer.GetIndexer(), v.gangs}
}

// GetStore implements cache.SharedInformer.
func (v *PodView) GetStore() cache.Store { return v.GetIndexer() }

// Known reports whether the gang cache has every pod that existed at the start.
func (v *PodView) Known() bool {
	v.mu.Lock()
	registration := v.handlers.registration
	v.mu.Unlock()
	return registration != nil && registration.HasSynced()
}

// Apply makes a change to the gang cache that does not come from an event of a live
// pod, and shows the engine the result.
func (v *PodView) Apply(change func() gangcache.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.follow(change(), "")
}

// follow shows the members of a change again, except one whose own event is under
// way. The lock must be held.
func (v *PodView) follow(change gangcache.Change, but types.UID) {
	others := slices.ContainsFunc(change.Members, func(uid types.UID) bool { return uid != but })
	if others && len(change.TermsChanged) > 0 {
		v.waitHandled(change.TermsChanged)
	}
	for _, uid := range change.Members {
		if uid == but || v.clear(uid) {
			continue
		}
		v.showAgain(uid)
	}
	for _, key := range change.Keys {
		v.touch(key)
	}
}

// showAgain shows a pod that has not changed itself.
func (v *PodView) showAgain(uid types.UID) {
	if s, ok := v.shown[uid]; ok {
		before := *s.view
		// The engine ignores an update with the same version.
		before.ResourceVersion += ", seen otherwise"
		v.show(&before, s.pod)
	}
}

// settled shows a pod that is bound, or has failed to be, in the gang that it has now.
func (v *PodView) settled(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.showAgain(uid)
}

// show notifies the engine of a pod, in place of its last view.
func (v *PodView) show(before, pod *corev1.Pod) {
	view := v.gangs.View(pod)
	was, _ := GroupOf(before)
	now, _ := GroupOf(view)
	if before.Spec.NodeName == "" && was != now && v.assumed.Then(pod.UID, func() { v.settled(pod.UID) }) {
		view, now = inGangOf(before, view), was
	}
	v.shown[pod.UID] = shownPod{pod, view}
	for _, handler := range v.handlers.all {
		// A pod with a node is not in the queue, and the cache handles the update.
		if before.Spec.NodeName != "" || was == now {
			handler.OnUpdate(before, view)
			continue
		}
		handler.OnDelete(before)
		handler.OnAdd(view, false)
	}
}

// inGangOf returns a view of a pod with the gang of another view of it.
func inGangOf(other, view *corev1.Pod) *corev1.Pod {
	of := *view
	of.Spec.SchedulingGroup, of.Spec.Priority, of.Spec.PreemptionPolicy = other.Spec.SchedulingGroup, other.Spec.Priority, other.Spec.PreemptionPolicy
	of.Spec.SchedulingGates = other.Spec.SchedulingGates
	return &of
}

// podEvents handles the events of pods from the API server.
type podEvents struct{ *PodView }

// OnAdd implements cache.ResourceEventHandler.
func (e podEvents) OnAdd(obj any, initial bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if pod, ok := obj.(*corev1.Pod); ok && e.ours(pod) {
		e.follow(e.gangs.SetPod(pod), pod.UID)
		if !initial && e.gangs.MayJoin(pod) {
			e.withhold(pod)
			return
		}
		view := e.gangs.View(pod)
		e.shown[pod.UID] = shownPod{pod, view}
		obj = view
	} else if ok {
		e.follow(e.gangs.SetForeign(pod), "")
	}
	for _, handler := range e.handlers.all {
		handler.OnAdd(obj, initial)
	}
}

// OnUpdate implements cache.ResourceEventHandler. It may stand for two pods of
// one name, as after a watch that was interrupted.
func (e podEvents) OnUpdate(old, obj any) {
	before, _ := old.(*corev1.Pod)
	pod, ok := obj.(*corev1.Pod)
	if before == nil || !ok {
		return
	}
	if before.UID != pod.UID {
		e.OnDelete(old)
		e.OnAdd(obj, false)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ours(pod) {
		for _, handler := range e.handlers.all {
			handler.OnUpdate(old, obj)
		}
		if !equality.Semantic.DeepEqual(before.Labels, pod.Labels) || !equality.Semantic.DeepEqual(before.Annotations, pod.Annotations) {
			e.follow(e.gangs.DeleteForeign(before), "")
			e.follow(e.gangs.SetForeign(pod), "")
		}
		return
	}
	e.follow(e.gangs.SetPod(pod), pod.UID)
	if e.withheld[pod.UID] != nil {
		e.withheld[pod.UID].pod = pod
		if !e.gangs.MayJoin(pod) {
			e.clear(pod.UID)
		}
		return
	}
	if s, ok := e.shown[pod.UID]; ok {
		before = s.view
	}
	e.show(before, pod)
}

// OnDelete implements cache.ResourceEventHandler.
func (e podEvents) OnDelete(obj any) {
	pod, ok := obj.(*corev1.Pod)
	last, missed := obj.(cache.DeletedFinalStateUnknown)
	if missed {
		pod, ok = last.Obj.(*corev1.Pod)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if ok && e.drop(pod.UID) { // it was not shown
		e.follow(e.gangs.DeletePod(pod.UID), pod.UID)
		return
	}
	if ok && e.ours(pod) {
		view := e.gangs.View(pod)
		if s, ok := e.shown[pod.UID]; ok { // where the engine looks for it
			view = inGangOf(s.view, view)
		}
		delete(e.shown, pod.UID)
		if obj = view; missed {
			obj = cache.DeletedFinalStateUnknown{Key: last.Key, Obj: view}
		}
	}
	for _, handler := range e.handlers.all {
		handler.OnDelete(obj)
	}
	switch {
	case ok && e.ours(pod):
		e.follow(e.gangs.DeletePod(pod.UID), pod.UID)
	case ok:
		e.follow(e.gangs.DeleteForeign(pod), "")
	}
}

// AmbiguousDelay is how long a pod is withheld that a budget would make a member
// of a gang. Budgets and pods are two watches, and an operator that creates a budget
// before its pods may rely on the order.
const AmbiguousDelay = 500 * time.Millisecond

// withheldPod is a pod that the engine does not see yet.
type withheldPod struct {
	pod   *corev1.Pod
	timer *time.Timer
}

// withhold hides a pod from the engine for the delay. The lock must be held.
func (v *PodView) withhold(pod *corev1.Pod) {
	d := &withheldPod{pod: pod}
	v.withheld[pod.UID] = d
	d.timer = time.AfterFunc(v.delay, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.withheld[pod.UID] == d {
			v.clear(pod.UID)
		}
	})
}

// clear shows the engine a withheld pod, and reports whether it was withheld. The
// lock must be held.
func (v *PodView) clear(uid types.UID) bool {
	d := v.withheld[uid]
	if !v.drop(uid) {
		return false
	}
	view := v.gangs.View(d.pod)
	v.shown[uid] = shownPod{d.pod, view}
	for _, handler := range v.handlers.all {
		handler.OnAdd(view, false)
	}
	return true
}

// drop removes a pod from the withheld ones, and reports whether it was withheld. The
// lock must be held.
func (v *PodView) drop(uid types.UID) bool {
	d := v.withheld[uid]
	if d == nil {
		return false
	}
	d.timer.Stop()
	delete(v.withheld, uid)
	return true
}

// viewIndexer is the cache of pods as the engine's listers see it. It stores the pods
// of the API server; gang and priority are added on read.
type viewIndexer struct {
	cache.Indexer
	gangs *gangcache.Cache
}

func (v viewIndexer) view(obj any) any {
	if pod, ok := obj.(*corev1.Pod); ok {
		return v.gangs.View(pod)
	}
	return obj
}

func (v viewIndexer) all(objs []any) []any {
	views := make([]any, len(objs))
	for i, obj := range objs {
		views[i] = v.view(obj)
	}
	return views
}

// List implements cache.Store.
func (v viewIndexer) List() []any { return v.all(v.Indexer.List()) }

// Get implements cache.Store.
func (v viewIndexer) Get(obj any) (item any, exists bool, err error) {
	item, exists, err = v.Indexer.Get(obj)
	return v.view(item), exists, err
}

// GetByKey implements cache.Store.
func (v viewIndexer) GetByKey(key string) (item any, exists bool, err error) {
	item, exists, err = v.Indexer.GetByKey(key)
	return v.view(item), exists, err
}

// Index implements cache.Indexer.
func (v viewIndexer) Index(indexName string, obj any) ([]any, error) {
	objs, err := v.Indexer.Index(indexName, obj)
	return v.all(objs), err
}

// ByIndex implements cache.Indexer.
func (v viewIndexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	objs, err := v.Indexer.ByIndex(indexName, indexedValue)
	return v.all(objs), err
}

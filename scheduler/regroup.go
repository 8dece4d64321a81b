package scheduler

import (
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// regrouped is the pod informer as the engine sees it: each pod of ours points
// to the virtual PodGroup of its gang and has the gang's priority.
//
// Which gang that is may change without the pod: an object appears that it
// names, a member with a higher priority joins. So events come from two sides,
// and the engine sees them in one order: the roster first, then the engine,
// under one lock. A pod whose gang changed while it waits is shown as one that
// goes and one that comes; in the API that the engine was made for, that never
// happens, and its caches lose such a pod.
type regrouped struct {
	cache.SharedIndexInformer
	gangs *gangcache.Cache
	ours  func(*corev1.Pod) bool
	touch func(gang.Key)
	// settle waits until the engine knows the newest of these virtual groups.
	settle func([]types.NamespacedName)

	mu           sync.Mutex
	handlers     []cache.ResourceEventHandler
	registration cache.ResourceEventHandlerRegistration
	sights       map[types.UID]sight
	doubts       doubts
	patience     time.Duration // with doubts
}

// sight is a pod of ours, and the copy of it that the engine was shown last.
type sight struct{ pod, view *corev1.Pod }

func newRegrouped(pods cache.SharedIndexInformer, gangs *gangcache.Cache, ours func(*corev1.Pod) bool, touch func(gang.Key), settle func([]types.NamespacedName), patience time.Duration) *regrouped {
	return &regrouped{
		SharedIndexInformer: pods, gangs: gangs, ours: ours, touch: touch,
		settle: settle, sights: map[types.UID]sight{}, doubts: doubts{}, patience: patience,
	}
}

// AddEventHandler implements cache.SharedInformer. All handlers must be there
// before the informer runs.
func (r *regrouped) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return r.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (r *regrouped) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.HasSynced() {
		return nil, errors.New("watch pods: a handler was added after the start")
	}
	if r.registration == nil {
		registration, err := r.SharedIndexInformer.AddEventHandlerWithOptions(podEvents{r}, options)
		if err != nil {
			return nil, err
		}
		r.registration = registration
	}
	r.handlers = append(r.handlers, handler)
	return r.registration, nil
}

// GetIndexer implements cache.SharedIndexInformer; the engine's listers read it.
func (r *regrouped) GetIndexer() cache.Indexer {
	return viewed{r.SharedIndexInformer.GetIndexer(), r.gangs}
}

// GetStore implements cache.SharedInformer.
func (r *regrouped) GetStore() cache.Store { return r.GetIndexer() }

// known reports whether the roster has every pod that existed at the start.
func (r *regrouped) known() bool {
	r.mu.Lock()
	registration := r.registration
	r.mu.Unlock()
	return registration != nil && registration.HasSynced()
}

// apply makes a change to the roster that no event of a live pod brings about,
// and shows the engine what came of it.
func (r *regrouped) apply(change func() gangcache.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow(change(), "")
}

// follow shows the members anew that a change concerns, but for one whose own
// event is under way. The caller holds the lock.
func (r *regrouped) follow(change gangcache.Change, but types.UID) {
	others := slices.ContainsFunc(change.Members, func(uid types.UID) bool { return uid != but })
	if others && len(change.TermsChanged) > 0 {
		r.settle(change.TermsChanged)
	}
	for _, uid := range change.Members {
		if uid == but || r.clear(uid) {
			continue
		}
		if s, ok := r.sights[uid]; ok {
			before := *s.view
			// The engine takes an update of the same version for none.
			before.ResourceVersion += ", seen otherwise"
			r.show(&before, s.pod)
		}
	}
	for _, key := range change.Keys {
		r.touch(key)
	}
}

// show tells the engine of a pod in the place of what it saw of it before.
func (r *regrouped) show(before, pod *corev1.Pod) {
	view := r.gangs.View(pod)
	r.sights[pod.UID] = sight{pod, view}
	was, _ := engine.GroupOf(before)
	now, _ := engine.GroupOf(view)
	for _, handler := range r.handlers {
		// A pod with a node is not in the queue, and the cache copes by itself.
		if before.Spec.NodeName != "" || was == now {
			handler.OnUpdate(before, view)
			continue
		}
		handler.OnDelete(before)
		handler.OnAdd(view, false)
	}
}

// podEvents are the pods' own, as the API server sends them.
type podEvents struct{ *regrouped }

// OnAdd implements cache.ResourceEventHandler.
func (e podEvents) OnAdd(obj any, initial bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if pod, ok := obj.(*corev1.Pod); ok && e.ours(pod) {
		e.follow(e.gangs.SetPod(pod), pod.UID)
		if !initial && e.gangs.MayJoin(pod) {
			e.doubt(pod)
			return
		}
		view := e.gangs.View(pod)
		e.sights[pod.UID] = sight{pod, view}
		obj = view
	} else if ok {
		e.follow(e.gangs.SetForeign(pod), "")
	}
	for _, handler := range e.handlers {
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
		for _, handler := range e.handlers {
			handler.OnUpdate(old, obj)
		}
		if !equality.Semantic.DeepEqual(before.Labels, pod.Labels) || !equality.Semantic.DeepEqual(before.Annotations, pod.Annotations) {
			e.follow(e.gangs.DeleteForeign(before), "")
			e.follow(e.gangs.SetForeign(pod), "")
		}
		return
	}
	e.follow(e.gangs.SetPod(pod), pod.UID)
	if e.doubts[pod.UID] != nil {
		e.doubts[pod.UID].pod = pod
		if !e.gangs.MayJoin(pod) {
			e.clear(pod.UID)
		}
		return
	}
	if s, ok := e.sights[pod.UID]; ok {
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
	if ok && e.drop(pod.UID) { // nobody was shown it
		e.follow(e.gangs.DeletePod(pod.UID), pod.UID)
		return
	}
	if ok && e.ours(pod) {
		view := e.gangs.View(pod)
		delete(e.sights, pod.UID)
		if obj = view; missed {
			obj = cache.DeletedFinalStateUnknown{Key: last.Key, Obj: view}
		}
	}
	for _, handler := range e.handlers {
		handler.OnDelete(obj)
	}
	switch {
	case ok && e.ours(pod):
		e.follow(e.gangs.DeletePod(pod.UID), pod.UID)
	case ok:
		e.follow(e.gangs.DeleteForeign(pod), "")
	}
}

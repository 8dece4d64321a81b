// Package virtual keeps the PodGroups that exist only inside the scheduler.
//
// The upstream engine knows one kind of gang, the PodGroup of
// scheduling.k8s.io/v1beta1, and reads it through an informer. A [Store] holds
// one such object for each gang of any dialect and serves it through the list
// and watch that an informer needs, so that the engine cannot tell them apart
// from objects of an API server.
package virtual

import (
	"context"
	"strconv"
	"sync"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// historyLimit is how many changes a watch may lag behind before it has to
// list again. An informer that lists does not lose anything, it only costs.
const historyLimit = 4096

// Store is a set of virtual PodGroups with the list and watch semantics of an
// API server. Its methods may be called from several goroutines.
type Store struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	groups  map[types.NamespacedName]*schedulingv1beta1.PodGroup
	version int64   // resource version of the newest change
	history []event // changes (version-len(history), version], oldest first
}

type event struct {
	kind  watch.EventType
	group *schedulingv1beta1.PodGroup
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		changed: make(chan struct{}),
		groups:  map[types.NamespacedName]*schedulingv1beta1.PodGroup{},
		version: 1,
	}
}

// Set adds a group or replaces its spec. The status that the store holds is
// kept: it belongs to the engine; a group of another UID has none yet. Setting
// an equal spec changes nothing.
func (s *Store) Set(group *schedulingv1beta1.PodGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	old, exists := s.groups[key]
	if exists && equalSpec(old, group) {
		return
	}
	group = group.DeepCopy()
	kind := watch.Added
	if exists {
		kind = watch.Modified
		if old.UID == group.UID {
			group.Status = *old.Status.DeepCopy()
		}
	}
	s.groups[key] = group
	s.record(kind, group)
}

// Delete removes a group; one that is not there is none to remove.
func (s *Store) Delete(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	old, exists := s.groups[key]
	if !exists {
		return
	}
	delete(s.groups, key)
	s.record(watch.Deleted, old.DeepCopy())
}

// SetCondition records what the engine says of a group, which it says anew at
// every attempt. It reports whether that was news, and returns the group; nil
// where there is none.
func (s *Store) SetCondition(namespace, name string, condition metav1.Condition) (group *schedulingv1beta1.PodGroup, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	old, exists := s.groups[key]
	if !exists {
		return nil, false
	}
	// That a gang was scheduled once is final, as in the engine's API.
	if apimeta.IsStatusConditionTrue(old.Status.Conditions, condition.Type) && condition.Status != metav1.ConditionTrue {
		return old.DeepCopy(), false
	}
	next := old.DeepCopy()
	if !apimeta.SetStatusCondition(&next.Status.Conditions, condition) {
		return old.DeepCopy(), false
	}
	s.groups[key] = next
	s.record(watch.Modified, next)
	return next.DeepCopy(), true
}

// Condition returns a copy of a condition of a group; nil where there is none.
func (s *Store) Condition(namespace, name, kind string) *metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := s.groups[types.NamespacedName{Namespace: namespace, Name: name}]
	if group == nil {
		return nil
	}
	return apimeta.FindStatusCondition(group.Status.Conditions, kind).DeepCopy()
}

// Get returns a copy of a group; ok is false where there is none.
func (s *Store) Get(namespace, name string) (group *schedulingv1beta1.PodGroup, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group, ok = s.groups[types.NamespacedName{Namespace: namespace, Name: name}]
	return group.DeepCopy(), ok
}

// record stamps the group with the next resource version and wakes watchers.
// The caller holds the lock and does not touch the group any more.
func (s *Store) record(kind watch.EventType, group *schedulingv1beta1.PodGroup) {
	s.version++
	group.ResourceVersion = strconv.FormatInt(s.version, 10)
	s.history = append(s.history, event{kind: kind, group: group})
	if len(s.history) > historyLimit {
		s.history = append([]event(nil), s.history[len(s.history)-historyLimit/2:]...)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// ListWithContext lists all groups; it implements half of cache.ListerWatcher.
func (s *Store) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &schedulingv1beta1.PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.version, 10)}}
	for _, group := range s.groups {
		list.Items = append(list.Items, *shown(group))
	}
	return list, nil
}

// shown is a group as the engine sees it: without its own word on it. Of a group
// that was scheduled once the engine would say nothing any more, and users would
// not learn that it waits again.
func shown(group *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
	view := group.DeepCopy()
	view.Status.Conditions = nil
	return view
}

// since returns the changes after a version and a channel that closes at the
// next one, or an Expired error where the history does not reach back so far.
func (s *Store) since(version int64) (events []event, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.version - int64(len(s.history))
	if version < first || version > s.version {
		return nil, nil, apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(version, 10))
	}
	return append([]event(nil), s.history[version-first:]...), s.changed, nil
}

func equalSpec(a, b *schedulingv1beta1.PodGroup) bool {
	return a.UID == b.UID && a.Generation == b.Generation && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

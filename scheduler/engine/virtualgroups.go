package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// historyLimit is the number of changes that a watch may lag behind before it has
// to list again. An informer that lists again loses nothing.
const historyLimit = 4096

// VirtualGroups is the store of the PodGroups that exist only inside the
// scheduler.
//
// The engine knows one kind of gang, the PodGroup of scheduling.k8s.io/v1beta1,
// and reads it through an informer. VirtualGroups stores one such object for each
// gang of any dialect and serves it with the list and watch semantics of an API
// server. A group that is stored is never changed, but replaced, so that all may read it. Its methods may be called
// from several goroutines.
type VirtualGroups struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	groups  map[types.NamespacedName]*schedulingv1beta1.PodGroup
	version int64         // resource version of the newest change
	history []groupChange // changes (version-len(history), version], oldest first
}

var _ cache.ListerWatcherWithContext = &VirtualGroups{}

type groupChange struct {
	kind  watch.EventType
	group *schedulingv1beta1.PodGroup
}

// NewVirtualGroups returns an empty store.
func NewVirtualGroups() *VirtualGroups {
	return &VirtualGroups{
		changed: make(chan struct{}),
		groups:  map[types.NamespacedName]*schedulingv1beta1.PodGroup{},
		version: 1,
	}
}

// GroupOf returns the virtual PodGroup of a pod, as the engine sees the pod; ok is
// false for a pod that is in no gang.
func GroupOf(pod *corev1.Pod) (group types.NamespacedName, ok bool) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: *pod.Spec.SchedulingGroup.PodGroupName}, true
}

// SignAlone implements fwk.SignPlugin for a plugin that has to do with gangs only: pods on their own are alike to it, and a member of a gang has no
// signature. The engine would make one for each member, and could use it for none that has a node of its gang's plan; few have not.
func SignAlone(pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if _, member := GroupOf(pod); member {
		return nil, fwk.NewStatus(fwk.Unschedulable, "a member of a gang has a node of its own")
	}
	return nil, nil
}

// Set adds a group or replaces its spec. The stored status is kept, because it
// belongs to the engine, unless the group has another UID. Setting an equal spec
// changes nothing.
func (s *VirtualGroups) Set(group *schedulingv1beta1.PodGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	old, exists := s.groups[key]
	if exists && SameTerms(old, group) {
		return
	}
	group = group.DeepCopy()
	kind := watch.Added
	if exists {
		kind = watch.Modified
		if old.UID == group.UID {
			group.Status = old.Status
		}
	}
	s.groups[key] = group
	s.record(kind, group)
}

// Delete removes a group. It is no error if there is none.
func (s *VirtualGroups) Delete(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	old, exists := s.groups[key]
	if !exists {
		return
	}
	delete(s.groups, key)
	gone := *old // with a version of its own
	s.record(watch.Deleted, &gone)
}

// SetCondition records a condition that the engine sets on a group, which it does
// again at every attempt. changed reports whether the condition differs from the
// stored one; group, which must not be changed, is nil where there is no such group.
func (s *VirtualGroups) SetCondition(namespace, name string, condition metav1.Condition) (group *schedulingv1beta1.PodGroup, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	old, exists := s.groups[key]
	if !exists {
		return nil, false
	}
	// A condition that is true is final, as in the engine's API.
	if apimeta.IsStatusConditionTrue(old.Status.Conditions, condition.Type) && condition.Status != metav1.ConditionTrue {
		return old, false
	}
	next := *old
	next.Status.Conditions = slices.Clone(old.Status.Conditions)
	if !apimeta.SetStatusCondition(&next.Status.Conditions, condition) {
		return old, false
	}
	s.groups[key] = &next
	s.record(watch.Modified, &next)
	return &next, true
}

// Condition returns a copy of a condition of a group; nil where there is none.
func (s *VirtualGroups) Condition(namespace, name, kind string) *metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := s.groups[types.NamespacedName{Namespace: namespace, Name: name}]
	if group == nil {
		return nil
	}
	return apimeta.FindStatusCondition(group.Status.Conditions, kind).DeepCopy()
}

// Get returns a group, which must not be changed; ok is false where there is none.
func (s *VirtualGroups) Get(namespace, name string) (group *schedulingv1beta1.PodGroup, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group, ok = s.groups[types.NamespacedName{Namespace: namespace, Name: name}]
	return group, ok
}

// record stamps the group with the next resource version and wakes watchers.
// The lock must be held, and the caller must not change the group any more.
func (s *VirtualGroups) record(kind watch.EventType, group *schedulingv1beta1.PodGroup) {
	s.version++
	group.ResourceVersion = strconv.FormatInt(s.version, 10)
	s.history = append(s.history, groupChange{kind: kind, group: group})
	if len(s.history) > historyLimit {
		s.history = append([]groupChange(nil), s.history[len(s.history)-historyLimit/2:]...)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns the changes after a version and a channel that closes at the
// next one, or an Expired error where the history does not reach back so far.
func (s *VirtualGroups) since(version int64) (changes []groupChange, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.version - int64(len(s.history))
	if version < first || version > s.version {
		return nil, nil, apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(version, 10))
	}
	return append([]groupChange(nil), s.history[version-first:]...), s.changed, nil
}

// withoutConditions returns a group as the engine sees it. The engine reports nothing
// on a group that is scheduled, and users would not be notified that the gang waits
// again.
func withoutConditions(group *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
	view := *group
	view.Status.Conditions = nil
	return &view
}

// SameTerms reports whether two states of a virtual group state the same about how its members are placed.
func SameTerms(a, b *schedulingv1beta1.PodGroup) bool {
	return a.UID == b.UID && a.Generation == b.Generation && maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// TopologyOf returns by which node labels the members of a virtual group share a domain. The engine's own field knows one label, and no preference,
// so the group has gangctl's annotations, whatever its dialect.
func TopologyOf(group *schedulingv1beta1.PodGroup) gang.Topology {
	t, err := gang.TopologyOf(group.Annotations)
	if err != nil {
		return gang.Topology{} // the cache of gangs wrote them
	}
	return t
}

// InTree reports whether a virtual group is placed together with others, as a part of a composite PodGroup.
func InTree(group *schedulingv1beta1.PodGroup) bool {
	return group.Spec.ParentCompositePodGroupName != nil && gangcache.PlacesTrees()
}

// ListWithContext implements cache.ListerWatcherWithContext. It lists all groups.
func (s *VirtualGroups) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &schedulingv1beta1.PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.version, 10)}}
	for _, group := range s.groups {
		list.Items = append(list.Items, *withoutConditions(group))
	}
	return list, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext. It streams the
// changes after options.ResourceVersion. The error is Expired where the store has
// discarded them, as from an API server.
func (s *VirtualGroups) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	version, err := strconv.ParseInt(options.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resource version %q: %v", options.ResourceVersion, err))
	}
	if _, _, err := s.since(version); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &groupWatch{results: make(chan watch.Event), stop: cancel}
	go w.run(ctx, s, version)
	return w, nil
}

// List is [VirtualGroups.ListWithContext] for callers of the older interface.
func (s *VirtualGroups) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is [VirtualGroups.WatchWithContext] for callers of the older interface.
func (s *VirtualGroups) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported has informers list before they watch. Without
// it an informer would wait indefinitely for the bookmark with which an API server
// ends a streamed list. The name is client-go's.
func (s *VirtualGroups) IsWatchListSemanticsUnSupported() bool { return true }

// groupWatch implements watch.Interface. It reads the store's history at its own
// pace, so that a slow reader never blocks a writer.
type groupWatch struct {
	results chan watch.Event
	stop    context.CancelFunc
}

// Stop implements watch.Interface.
func (w *groupWatch) Stop() { w.stop() }

// ResultChan implements watch.Interface.
func (w *groupWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *groupWatch) run(ctx context.Context, s *VirtualGroups, version int64) {
	defer close(w.results)
	for {
		changes, changed, err := s.since(version)
		if err != nil {
			status := apierrors.NewResourceExpired(err.Error()).Status()
			w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			return
		}
		for _, c := range changes {
			if !w.send(ctx, watch.Event{Type: c.kind, Object: withoutConditions(c.group)}) {
				return
			}
			version++
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (w *groupWatch) send(ctx context.Context, e watch.Event) bool {
	select {
	case w.results <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

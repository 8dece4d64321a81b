package scheduler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/roster"
)

// byGang is the index under which the pods of one gang are found.
const byGang = "gang"

// members are the pods of the cluster: the live ones, which the engine sees
// too, and those that have ended, which only the status of a gang counts.
type members struct {
	names []string // the scheduler names that are ours
	live  cache.SharedIndexInformer
	ended cache.SharedIndexInformer
}

func newMembers(client kubernetes.Interface, names []string) (*members, error) {
	m := &members{names: names}
	indexers := func() cache.Indexers { return cache.Indexers{byGang: m.index} }
	m.live = coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, indexers(), selectPhases("status.phase!=Succeeded,status.phase!=Failed"))
	m.ended = coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, indexers(), selectPhases("status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"))
	if err := m.live.SetTransform(m.enroll); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if err := m.ended.SetTransform(trimEnded); err != nil {
		return nil, fmt.Errorf("watch ended pods: %w", err)
	}
	return m, nil
}

func selectPhases(selector string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) { options.FieldSelector = selector }
}

// key returns the gang of a pod that is ours to schedule.
func (m *members) key(obj any) (gang.Key, *corev1.Pod, bool) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok || !slices.Contains(m.names, pod.Spec.SchedulerName) {
		return gang.Key{}, nil, false
	}
	key, ok := roster.KeyOf(pod)
	return key, pod, ok
}

func (m *members) index(obj any) ([]string, error) {
	if key, _, ok := m.key(obj); ok {
		return []string{key.String()}, nil
	}
	return nil, nil
}

// enroll is the transform of live pods: the engine gets to see which gang each
// of our pods belongs to.
func (m *members) enroll(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.ManagedFields = nil
	if slices.Contains(m.names, pod.Spec.SchedulerName) && !leaving(pod) {
		roster.Enroll(pod)
	}
	return pod, nil
}

// leaving tells a member that has its place and is being deleted. It may be so
// for minutes, or for ever on a node that is dead, and the engine would count it
// towards the gang's minimum, which it does not help any more.
func leaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != ""
}

// trimEnded keeps of a pod that has ended what its gang's status needs.
func trimEnded(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
		},
		Spec:   corev1.PodSpec{SchedulerName: pod.Spec.SchedulerName, NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

// of lists the pods of a gang. A pod that ended a moment ago may be in both
// caches or in neither; its next event mends that.
func (m *members) of(key gang.Key) []*corev1.Pod {
	var pods []*corev1.Pod
	seen := map[string]bool{}
	for _, informer := range []cache.SharedIndexInformer{m.ended, m.live} {
		objs, err := informer.GetIndexer().ByIndex(byGang, key.String())
		if err != nil {
			continue
		}
		for _, obj := range objs {
			if pod, ok := obj.(*corev1.Pod); ok && !seen[string(pod.UID)] {
				seen[string(pod.UID)] = true
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// hasSynced reports whether every pod that existed at the start is known.
func (m *members) hasSynced() bool { return m.live.HasSynced() && m.ended.HasSynced() }

// notify keeps the roster current, and says which gangs changed.
func (m *members) notify(gangs *roster.Roster, touch func(gang.Key)) error {
	set := func(obj any) {
		key, pod, ok := m.key(obj)
		if !ok {
			return
		}
		if leaving(pod) {
			gangs.DeletePod(key, pod.UID)
		} else {
			gangs.SetPod(key, pod)
		}
		touch(key)
	}
	if _, err := m.live.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			before, pod, was := m.key(old)
			if after, now, is := m.key(obj); was && (!is || before != after || pod.UID != now.UID) {
				gangs.DeletePod(before, pod.UID)
				touch(before)
			}
			set(obj)
		},
		DeleteFunc: func(obj any) {
			if key, pod, ok := m.key(obj); ok {
				gangs.DeletePod(key, pod.UID)
				touch(key)
			}
		},
	}); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	changed := func(obj any) {
		if key, _, ok := m.key(obj); ok {
			touch(key)
		}
	}
	if _, err := m.ended.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: changed,
	}); err != nil {
		return fmt.Errorf("watch ended pods: %w", err)
	}
	return nil
}

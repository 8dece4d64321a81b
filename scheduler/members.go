package scheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// members are the pods of the cluster: the live ones, which the engine sees
// too, and those that have ended, which count towards a gang's minimum and its
// status.
type members struct {
	names []string // the scheduler names that are ours
	live  *regrouped
	ended cache.SharedIndexInformer
	// known is true when the roster has every pod that had ended at the start.
	known cache.InformerSynced
}

// newMembers brings the pods of our names into the roster; touch is told which
// gangs changed.
func newMembers(client kubernetes.Interface, names []string, gangs *gangcache.Cache, touch func(gang.Key)) (*members, error) {
	m := &members{names: names}
	pods := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}, selectPhases("status.phase!=Succeeded,status.phase!=Failed"))
	if err := pods.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	m.live = newRegrouped(pods, gangs, m.ours, touch)
	m.ended = coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}, selectPhases("status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"))
	if err := m.ended.SetTransform(trimEnded); err != nil {
		return nil, fmt.Errorf("watch ended pods: %w", err)
	}
	set := func(obj any) {
		if pod, ok := m.pod(obj); ok {
			m.live.apply(func() gangcache.Change { return gangs.SetEnded(pod) })
		}
	}
	registration, err := m.ended.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			if before, ok := m.pod(old); ok {
				if pod, is := m.pod(obj); !is || pod.UID != before.UID {
					m.live.apply(func() gangcache.Change { return gangs.DeleteEnded(before.UID) })
				}
			}
			set(obj)
		},
		DeleteFunc: func(obj any) {
			if pod, ok := m.pod(obj); ok {
				m.live.apply(func() gangcache.Change { return gangs.DeleteEnded(pod.UID) })
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch ended pods: %w", err)
	}
	m.known = registration.HasSynced
	return m, nil
}

func selectPhases(selector string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) { options.FieldSelector = selector }
}

// ours tells the pods that are ours to schedule.
func (m *members) ours(pod *corev1.Pod) bool { return slices.Contains(m.names, pod.Spec.SchedulerName) }

// pod returns the pod of an event, if it is ours.
func (m *members) pod(obj any) (*corev1.Pod, bool) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	return pod, ok && m.ours(pod)
}

// trim drops what nobody reads.
func trim(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}

// trimEnded keeps of a pod that has ended what tells its gang, and what the
// gang's minimum and status need.
func trimEnded(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{SchedulerName: pod.Spec.SchedulerName, NodeName: pod.Spec.NodeName, SchedulingGroup: pod.Spec.SchedulingGroup, Priority: pod.Spec.Priority},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for key, value := range pod.Annotations {
		if !strings.HasPrefix(key, "kubectl.kubernetes.io/") { // may hold a whole manifest
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	return kept, nil
}

// hasSynced reports whether every pod that existed at the start is known.
func (m *members) hasSynced() bool { return m.live.known() && m.known() }

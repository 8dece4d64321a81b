package scheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// podInformers are the pods of the cluster as the API server has them: the live
// ones, and those that have ended, which the engine does not see.
type podInformers struct {
	live, ended cache.SharedIndexInformer
}

// newPodInformers returns informers that do not run yet.
func newPodInformers(client kubernetes.Interface) (*podInformers, error) {
	p := &podInformers{
		live:  coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}, selectPhases("status.phase!=Succeeded,status.phase!=Failed")),
		ended: coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}, selectPhases("status.phase!=Pending,status.phase!=Running,status.phase!=Unknown")),
	}
	if err := p.live.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if err := p.ended.SetTransform(trimEnded); err != nil {
		return nil, fmt.Errorf("watch ended pods: %w", err)
	}
	return p, nil
}

// all are the pods that are known.
func (p *podInformers) all() (pods []*corev1.Pod) {
	for _, informer := range []cache.SharedIndexInformer{p.live, p.ended} {
		pods = append(pods, podsIn(informer)...)
	}
	return pods
}

func podsIn(informer cache.SharedIndexInformer) (pods []*corev1.Pod) {
	for _, obj := range informer.GetStore().List() {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

// owned reports whether a job has pods because of which it cannot be resumed yet.
// Those that have ended count where the job, when it is suspended, deletes them,
// too: a Job of Kubernetes deletes its active pods only, and keeps the others for
// as long as it is there. It looks at every pod of the cluster, and is asked only
// while a job of ours is suspended.
func (p *podInformers) owned(job suspend.Job) bool {
	pods := podsIn(p.live)
	if job.Brittle() {
		pods = append(pods, podsIn(p.ended)...)
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		controller := metav1.GetControllerOfNoCopy(pod)
		return controller != nil && controller.UID == job.UID
	})
}

// members are the pods of our names: the live ones, which the engine sees too, and
// those that have ended, which count towards a gang's minimum and its status.
type members struct {
	names []string // the scheduler names that are ours
	live  *engine.PodView
	// known is true when the roster has every pod that had ended at the start.
	known cache.InformerSynced
}

// newMembers brings the pods of our names into the roster. Touch is called with the
// gangs that changed; settle waits until the engine knows virtual groups.
func newMembers(pods *podInformers, names []string, gangs *gangcache.Cache, touch func(gang.Key), settle func([]types.NamespacedName)) (*members, error) {
	m := &members{names: names}
	m.live = engine.NewPodView(pods.live, gangs, m.ours, touch, settle, engine.AmbiguousDelay)
	set := func(obj any) {
		if pod, ok := m.pod(obj); ok {
			m.live.Apply(func() gangcache.Change { return gangs.SetEnded(pod) })
		}
	}
	registration, err := pods.ended.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			if before, ok := m.pod(old); ok {
				if pod, is := m.pod(obj); !is || pod.UID != before.UID {
					m.live.Apply(func() gangcache.Change { return gangs.DeleteEnded(before.UID) })
				}
			}
			set(obj)
		},
		DeleteFunc: func(obj any) {
			if pod, ok := m.pod(obj); ok {
				m.live.Apply(func() gangcache.Change { return gangs.DeleteEnded(pod.UID) })
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
func (m *members) hasSynced() bool { return m.live.Known() && m.known() }

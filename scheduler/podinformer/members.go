package podinformer

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// Members are the pods of our names: the live ones, which the engine sees too, and
// those that have ended, which count towards a gang's minimum and its status.
type Members struct {
	names []string // the scheduler names that are ours
	// Live is what the engine sees of the live ones.
	Live *engine.PodView
	// known is true when the cache has every pod that had ended at the start.
	known cache.InformerSynced
}

// NewMembers brings the pods of our names into the cache of gangs. Touch is called with the
// gangs that changed; waitHandled waits until the engine knows virtual groups.
func NewMembers(
	pods *Informers, names []string, gangs *gangcache.Cache, assumed *engine.AssumedPods, touch func(gang.Key), waitHandled func([]types.NamespacedName),
) (*Members, error) {
	m := &Members{names: names}
	m.Live = engine.NewPodView(pods.Live, gangs, assumed, m.ours, touch, waitHandled, engine.AmbiguousDelay)
	set := func(obj any) {
		if pod, ok := m.pod(obj); ok {
			m.Live.Apply(func() gangcache.Change { return gangs.SetEnded(pod) })
		}
	}
	registration, err := pods.Ended.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			if before, ok := m.pod(old); ok {
				if pod, is := m.pod(obj); !is || pod.UID != before.UID {
					m.Live.Apply(func() gangcache.Change { return gangs.DeleteEnded(before.UID) })
				}
			}
			set(obj)
		},
		DeleteFunc: func(obj any) {
			if pod, ok := m.pod(obj); ok {
				m.Live.Apply(func() gangcache.Change { return gangs.DeleteEnded(pod.UID) })
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch ended pods: %w", err)
	}
	m.known = registration.HasSynced
	return m, nil
}

// ours reports whether a pod is ours to schedule.
func (m *Members) ours(pod *corev1.Pod) bool { return slices.Contains(m.names, pod.Spec.SchedulerName) }

// pod returns the pod of an event, if it is ours.
func (m *Members) pod(obj any) (*corev1.Pod, bool) {
	pod, ok := engine.EventObject[*corev1.Pod](obj)
	return pod, ok && m.ours(pod)
}

// HasSynced reports whether every pod that existed at the start is known.
func (m *Members) HasSynced() bool { return m.Live.Known() && m.known() }

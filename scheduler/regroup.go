package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/scheduler/virtual"
)

// regrouped is the pod informer as the engine sees it. In the API that the
// engine was made for a pod never changes its gang, and its caches lose a pod
// that does; a label may change. So an update that moves a waiting pod to
// another gang, or that stands for two pods of one name (as after a watch that
// was interrupted), is shown as one pod that goes and one that comes.
type regrouped struct{ cache.SharedIndexInformer }

// AddEventHandler implements cache.SharedInformer.
func (r regrouped) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return r.SharedIndexInformer.AddEventHandler(regroup{handler})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (r regrouped) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return r.SharedIndexInformer.AddEventHandlerWithOptions(regroup{handler}, options)
}

type regroup struct{ cache.ResourceEventHandler }

// OnUpdate implements cache.ResourceEventHandler.
func (r regroup) OnUpdate(before, after any) {
	old, ok := before.(*corev1.Pod)
	pod, is := after.(*corev1.Pod)
	if !ok || !is {
		r.ResourceEventHandler.OnUpdate(before, after)
		return
	}
	// A pod with a node is not in the queue, and the cache copes by itself.
	was, _ := virtual.GroupOf(old)
	now, _ := virtual.GroupOf(pod)
	if old.Spec.NodeName != "" || (old.UID == pod.UID && was == now) {
		r.ResourceEventHandler.OnUpdate(before, after)
		return
	}
	r.OnDelete(before)
	r.OnAdd(after, false)
}

package planner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// queue is the engine's queue. It notifies the planner of every event, after the engine's cache has it, so that none can
// fall between the snapshot of an attempt and its memo.
type queue struct {
	internalqueue.SchedulingQueue
	planner *Planner
	gone    func(*corev1.Pod)
}

// MoveAllToActiveOrBackoffQueue implements internalqueue.SchedulingQueue.
func (q *queue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, before, after any, check internalqueue.PreEnqueueCheck) {
	woken := q.planner.observe(event, before, after)
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, before, after, check)
	q.planner.wake(woken...)
	if pod, ok := before.(*corev1.Pod); ok && after == nil && event.Resource == fwk.AssignedPod {
		q.gone(pod)
	}
	// The group's status changes whenever the engine reports on it, which is no reason to try again.
	if now, ok := after.(*schedulingv1beta1.PodGroup); ok {
		if was, ok := before.(*schedulingv1beta1.PodGroup); !ok || !equality.Semantic.DeepEqual(was.Spec, now.Spec) {
			q.planner.Wake(types.NamespacedName{Namespace: now.Namespace, Name: now.Name})
		}
	}
}

// Add implements internalqueue.SchedulingQueue. One more member to choose from may be what a gang needs.
func (q *queue) Add(ctx context.Context, pod *corev1.Pod) {
	q.SchedulingQueue.Add(ctx, pod)
	if group, ok := engine.GroupOf(pod); ok {
		q.planner.Wake(group)
	}
}

// Update implements internalqueue.SchedulingQueue.
func (q *queue) Update(ctx context.Context, before, after *corev1.Pod) {
	q.SchedulingQueue.Update(ctx, before, after)
	if group, ok := engine.GroupOf(after); ok && changesRequests(before, after) {
		q.planner.Wake(group)
	}
}

// changesRequests reports whether a pod that waits requests something else than before. What we and others write into its status
// does not count.
func changesRequests(before, after *corev1.Pod) bool {
	if before == nil {
		return true
	}
	for _, event := range framework.PodSchedulingPropertiesChange(after, before, true) {
		if event.ActionType != fwk.Update {
			return true
		}
	}
	return false
}

// AddAttemptedPodGroupIfNeeded implements internalqueue.SchedulingQueue: it ends an attempt.
func (q *queue) AddAttemptedPodGroupIfNeeded(logger klog.Logger, gang *framework.QueuedPodGroupInfo, cycle int64, status *fwk.Status) error {
	status = q.planner.cleared(nameOf(gang), status)
	q.planner.end(nameOf(gang), status)
	err := q.SchedulingQueue.AddAttemptedPodGroupIfNeeded(logger, gang, cycle, status)
	q.planner.wake(q.planner.close()...)
	return err
}

func nameOf(gang *framework.QueuedPodGroupInfo) types.NamespacedName {
	return types.NamespacedName{Namespace: gang.GetNamespace(), Name: gang.GetName()}
}

package planner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
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
	if pod, ok := after.(*corev1.Pod); ok && before == nil && event.Resource == fwk.UnscheduledPod && alone() {
		if group, ok := engine.GroupOf(pod); ok && !q.planner.at(group) {
			q.arrived(logger, group, pod)
			return
		}
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, before, after, concerned(event, before, after, check))
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

// concerned leaves gangs that an event does not concern out of what the engine looks at: a pod that waits for a node, and a group, matter to
// their own gang only. Without it every new pod would have every rule asked about every gang that waits.
func concerned(event fwk.ClusterEvent, before, after any, check internalqueue.PreEnqueueCheck) internalqueue.PreEnqueueCheck {
	if event.Resource != fwk.UnscheduledPod && event.Resource != fwk.PodGroup || !alone() {
		return check
	}
	about, ok := gangOf(after)
	if !ok {
		if about, ok = gangOf(before); !ok {
			return check
		}
	}
	return func(pod *corev1.Pod) bool {
		group, member := engine.GroupOf(pod)
		return (!member || group == about) && (check == nil || check(pod))
	}
}

// alone reports whether a gang's members matter to that gang only; the groups of a composite group matter to each other.
func alone() bool { return !utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) }

// arrived has a gang tried when a member came that completes it. To find that without a look at all that wait takes no event; and before it
// is complete there is nothing to try.
func (q *queue) arrived(logger klog.Logger, group types.NamespacedName, pod *corev1.Pod) {
	if q.planner.engine.Complete(group) {
		q.SchedulingQueue.Activate(logger, map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
	}
}

// at reports whether a gang is being scheduled.
func (a *Attempts) at(group types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now != nil && a.now.group == group
}

// Activate implements internalqueue.SchedulingQueue. The engine activates all members of a gang that are under way with each one that it
// lets pass, which costs the square of their number; the first time does it for the attempt.
func (q *queue) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	if !q.planner.activated(pods) {
		q.SchedulingQueue.Activate(logger, pods)
	}
}

// activated reports whether pods are members of the gang that is being scheduled, and have been activated since that began.
func (a *Attempts) activated(pods map[string]*corev1.Pod) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil {
		return false
	}
	for _, pod := range pods {
		if group, ok := engine.GroupOf(pod); !ok || group != a.now.group || !a.now.tries.Has(pod.UID) {
			return false
		}
	}
	before := a.now.activated
	a.now.activated = true
	return before
}

// gangOf returns the gang that a group is of, or a pod a member of.
func gangOf(object any) (types.NamespacedName, bool) {
	switch o := object.(type) {
	case *corev1.Pod:
		return engine.GroupOf(o)
	case *schedulingv1beta1.PodGroup:
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true
	}
	return types.NamespacedName{}, false
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

package planner

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// queue wraps the engine's queue. It notifies the planner of every event after the engine's cache has it, so that none is lost between
// the snapshot of an attempt and its end. The engine itself does so of all events but one: of a node that is deleted it notifies the queue first.
type queue struct {
	internalqueue.SchedulingQueue
	planner *Planner
	gone    func(*corev1.Pod)
	// began: the engine has taken something from the queue, or waits for it.
	began atomic.Bool
}

// MoveAllToActiveOrBackoffQueue implements internalqueue.SchedulingQueue. What follows from the deletion of a node is for nodeRemoved: what is tried before
// may be tried on a snapshot that has the node.
func (q *queue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, before, after any, check internalqueue.PreEnqueueCheck) {
	if event.Resource == fwk.Node && event.ActionType == fwk.Delete {
		return
	}
	q.happened(logger, event, before, after, check)
}

// nodeRemoved handles the deletion of a node when the engine's cache does not have it any more.
func (q *queue) nodeRemoved(logger klog.Logger, node *corev1.Node) {
	q.happened(logger, fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete}, node, nil, nil)
}

// happened handles an event that the engine's cache has.
func (q *queue) happened(logger klog.Logger, event fwk.ClusterEvent, before, after any, check internalqueue.PreEnqueueCheck) {
	woken := q.planner.observe(event, before, after)
	if pod, ok := after.(*corev1.Pod); ok && before == nil && event.Resource == fwk.UnscheduledPod {
		group, member := engine.GroupOf(pod)
		switch {
		case member && q.planner.scheduling(group):
			q.planner.Changed(group) // the attempt under way is without the member: a further one includes it, and reports on it
		case member && gangsAreIndependent():
			q.memberAdded(logger, group, pod)
			return
		}
	}
	if now, ok := after.(*schedulingv1beta1.PodGroup); ok && event.Resource == fwk.PodGroup && gangsAreIndependent() {
		if q.groupOnly(logger, before, now) {
			return
		}
	}
	if !q.atStart(logger, event, before, after) {
		q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, before, after, q.planner.triable(event, concerned(event, before, after, check)))
	}
	q.planner.wake(woken...)
	if pod, ok := before.(*corev1.Pod); ok && after == nil && event.Resource == fwk.AssignedPod {
		q.gone(pod)
	}
	if group, ok := before.(*schedulingv1beta1.PodGroup); ok && after == nil {
		q.planner.forgetNext(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	}
	// The group's status changes whenever the engine reports on it, which is no reason to try again.
	if now, ok := after.(*schedulingv1beta1.PodGroup); ok {
		if was, ok := before.(*schedulingv1beta1.PodGroup); !ok || !engine.SameTerms(was, now) {
			q.planner.Changed(types.NamespacedName{Namespace: now.Namespace, Name: now.Name})
		}
	}
}

// atStart handles the events of nodes, and of pods on nodes that are new, before the engine tries anything, and reports whether this is one: at the start
// each of them is an event, and nothing has been refused yet that it could help. But a pod may complete its gang.
func (q *queue) atStart(logger klog.Logger, event fwk.ClusterEvent, before, after any) bool {
	switch pod, ok := after.(*corev1.Pod); {
	case q.began.Load():
		return false
	case event.Resource == fwk.Node:
		return true
	case event.Resource != fwk.AssignedPod || !ok || before != nil || !gangsAreIndependent():
		return false
	default:
		if group, member := engine.GroupOf(pod); member && q.planner.engine.Complete(group) {
			q.SchedulingQueue.Activate(logger, q.planner.engine.Unscheduled(group))
		}
		return true
	}
}

// groupOnly handles the events of a group that need no look at what waits, and reports whether this is one: a status that has changed,
// which changes nothing, and a group that comes, which may complete its own gang.
func (q *queue) groupOnly(logger klog.Logger, before any, now *schedulingv1beta1.PodGroup) bool {
	group := types.NamespacedName{Namespace: now.Namespace, Name: now.Name}
	if was, ok := before.(*schedulingv1beta1.PodGroup); ok {
		return engine.SameTerms(was, now)
	}
	if q.planner.scheduling(group) {
		return false
	}
	q.planner.Changed(group)
	if q.planner.engine.Complete(group) {
		q.SchedulingQueue.Activate(logger, q.planner.engine.Unscheduled(group))
	}
	return true
}

// concerned skips the gangs that an event does not concern: an unscheduled pod, and a group, concern their own gang only. Without it the
// engine would evaluate every new pod against every gang that waits.
func concerned(event fwk.ClusterEvent, before, after any, check internalqueue.PreEnqueueCheck) internalqueue.PreEnqueueCheck {
	if event.Resource != fwk.UnscheduledPod && event.Resource != fwk.PodGroup || !gangsAreIndependent() {
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

// triable skips the gangs that would be refused when they have been evaluated: those that are parked, and those of which members are
// missing, which only their own members and groups can change. The engine goes by members: of those that come one after the other only the
// first is looked up. It goes through all members of a gang that are skipped, and there may be thousands at each event; of a parked gang the first passes therefore: the
// engine finds the gang gated, by a plugin that no event helps, and looks no further.
func (p *Planner) triable(event fwk.ClusterEvent, check internalqueue.PreEnqueueCheck) internalqueue.PreEnqueueCheck {
	var last types.NamespacedName
	var parked, refused bool
	general := event.Resource == fwk.AssignedPod && event.ActionType == fwk.Update // the status of a pod has changed: what that may help is parked
	return func(pod *corev1.Pod) bool {
		if group, member := engine.GroupOf(pod); member {
			if group != last {
				last, parked = group, p.isParked(group)
				refused = parked || general || p.lacksMembers(group)
			}
			if refused {
				return parked && !framework.ClusterEventIsWildCard(event) // which is about gated ones, too
			}
		}
		return check == nil || check(pod)
	}
}

// lacksMembers reports whether a gang is not tried before it has more members.
func (p *Planner) lacksMembers(group types.NamespacedName) bool {
	return gangsAreIndependent() && !p.engine.Complete(group)
}

// gangsAreIndependent reports whether events of a gang concern that gang only; the groups of a composite group depend on each other.
func gangsAreIndependent() bool {
	return !gangcache.PlacesTrees()
}

// memberAdded activates a gang that a new member completes. Before that there is nothing to try. Without it the engine would go through all
// pods that wait.
func (q *queue) memberAdded(logger klog.Logger, group types.NamespacedName, pod *corev1.Pod) {
	if q.planner.engine.Complete(group) {
		q.SchedulingQueue.Activate(logger, map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
	}
}

// scheduling reports whether a gang is the one under way.
func (a *Attempts) scheduling(group types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current != nil && a.current.group == group
}

// gangOf returns the gang of a group, or of a member.
func gangOf(object any) (types.NamespacedName, bool) {
	switch o := object.(type) {
	case *corev1.Pod:
		return engine.GroupOf(o)
	case *schedulingv1beta1.PodGroup:
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true
	}
	return types.NamespacedName{}, false
}

// Add implements internalqueue.SchedulingQueue. A new member may complete a gang.
func (q *queue) Add(ctx context.Context, pod *corev1.Pod) {
	q.SchedulingQueue.Add(ctx, pod)
	if group, ok := engine.GroupOf(pod); ok {
		q.planner.Changed(group)
	}
}

// Update implements internalqueue.SchedulingQueue. The engine checks for every member of a gang that waits whether an update of one may help, while it holds the lock of its
// queue: the statuses that it writes to a thousand members would be a million checks. Where a member fails, it takes the pod as the informer has it. The
// terms of a gang are those of all its members, and one that changes them changes a thousand: of a gang that is not tried the member is exchanged, which takes
// no check, unless it is nominated: the queue forgets that. The change of its group has the gang tried.
func (q *queue) Update(ctx context.Context, before, after *corev1.Pod) {
	group, member := engine.GroupOf(after)
	termsOnly := member && before != nil && changesTermsOnly(before, after)
	switch {
	case termsOnly && sameTerms(before, after):
		return // its conditions have changed, which no attempt reads of the pod in the queue
	case termsOnly && after.Status.NominatedNodeName == "" && (q.planner.isParked(group) || q.planner.lacksMembers(group)):
		q.SchedulingQueue.Delete(klog.FromContext(ctx), before)
		q.SchedulingQueue.Add(ctx, after)
		return
	}
	q.SchedulingQueue.Update(ctx, before, after)
	if member && changesRequests(before, after) {
		q.planner.Changed(group)
	}
}

// changesRequests reports whether an update changes what a waiting pod requests. Changes of its status do not count.
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

// changesTermsOnly reports whether an update changes nothing of a waiting pod but its priority and its preemption policy, and perhaps its conditions. To compare
// specs takes longer than all else, and API servers count their changes, since 1.33: gang, priority and policy are not the server's.
func changesTermsOnly(before, after *corev1.Pod) bool {
	was, _ := engine.GroupOf(before)
	is, _ := engine.GroupOf(after)
	sameSpec := before.Generation > 0 && before.Generation == after.Generation
	without := func(pod *corev1.Pod) *corev1.Pod {
		other := *pod
		other.ResourceVersion, other.ManagedFields, other.Status.Conditions = "", nil, nil
		other.Spec.Priority, other.Spec.PreemptionPolicy = nil, nil
		if sameSpec {
			other.Spec = corev1.PodSpec{}
		}
		return &other
	}
	return was == is && equality.Semantic.DeepEqual(without(before), without(after))
}

// sameTerms reports whether two states of a pod have the same priority and preemption policy.
func sameTerms(a, b *corev1.Pod) bool {
	return ptr.Equal(a.Spec.Priority, b.Spec.Priority) && ptr.Equal(a.Spec.PreemptionPolicy, b.Spec.PreemptionPolicy)
}

// AddAttemptedPodGroupIfNeeded implements internalqueue.SchedulingQueue: it ends an attempt.
func (q *queue) AddAttemptedPodGroupIfNeeded(logger klog.Logger, gang *framework.QueuedPodGroupInfo, cycle int64, status *fwk.Status) error {
	status = q.planner.cleared(nameOf(gang), status)
	q.planner.joined(q.PendingPodGroupPods())
	q.planner.end(nameOf(gang), status)
	err := q.SchedulingQueue.AddAttemptedPodGroupIfNeeded(logger, gang, cycle, status)
	q.planner.wake(q.planner.close()...)
	return err
}

func nameOf(gang *framework.QueuedPodGroupInfo) types.NamespacedName {
	return types.NamespacedName{Namespace: gang.GetNamespace(), Name: gang.GetName()}
}

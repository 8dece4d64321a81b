package replacement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"
)

// ReasonGiven is the reason of the condition DisruptionTarget of a pod whose
// place our own policy takes from its gang; it is not kept.
const ReasonGiven = "GangRolledBack"

// Follow keeps the ledger current from the pods that are alive, and from those
// that have ended. Either informer may hold pods of anybody. The first must call
// its handlers one after another in the order in which they were added, and the
// engine must add its own later: what it has seen go, the ledger then knows of.
func (l *Ledger) Follow(live, ended cache.SharedInformer) error {
	if _, err := live.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { l.see(podOf(obj)) },
		UpdateFunc: func(old, obj any) {
			before, after := podOf(old), podOf(obj)
			if before != nil && after != nil && before.UID != after.UID {
				l.gone(before)
			}
			l.see(after)
		},
		DeleteFunc: func(obj any) { l.gone(podOf(obj)) },
	}); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if _, err := ended.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { l.over(podOf(obj)) },
		UpdateFunc: func(_, obj any) { l.over(podOf(obj)) },
	}); err != nil {
		return fmt.Errorf("watch ended pods: %w", err)
	}
	return nil
}

func podOf(obj any) *corev1.Pod {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	pod, _ := obj.(*corev1.Pod)
	return pod
}

// see enters a pod that has a node.
func (l *Ledger) see(pod *corev1.Pod) {
	if pod == nil || pod.Spec.NodeName == "" {
		return
	}
	group, member := l.gangs.GroupOf(pod)
	if !member {
		return
	}
	l.mu.Lock()
	// One that leaves without a place has been replaced already, or it is not known
	// yet whether it has: see enterAll.
	wake := func() {}
	if (l.slots[pod.UID] != nil || pod.DeletionTimestamp == nil) && l.enter(group, pod) {
		wake = l.wakeable()
	}
	l.mu.Unlock()
	wake()
}

// enter notes where a pod is. It reports whether less is held than before.
func (l *Ledger) enter(group types.NamespacedName, pod *corev1.Pod) (freed bool) {
	s := l.slots[pod.UID]
	if s == nil || s.node != pod.Spec.NodeName || s.group != group {
		s = &slot{pod: pod, group: group, node: pod.Spec.NodeName, name: pod.Name}
		back := l.put(s)
		freed = back != nil
	}
	s.pod = pod
	delete(l.failing, pod.UID)
	s.given = takenOnPurpose(pod)
	if pod.DeletionTimestamp != nil {
		l.loosen(s)
	}
	// A cycle may have seen the pod go before we were told why.
	if s.given && s.held {
		l.ended(s, endReleased)
		freed = true
	}
	return freed
}

// gone notes the time of death of a pod.
func (l *Ledger) gone(pod *corev1.Pod) {
	if pod == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, pod.UID)
	if s := l.slots[pod.UID]; s != nil {
		l.stale[s.node] = true
		l.lose(s, l.clock.Now())
	}
}

// over strikes out a pod that has completed: it needs no replacement.
func (l *Ledger) over(pod *corev1.Pod) {
	if pod == nil || pod.Status.Phase != corev1.PodSucceeded {
		return
	}
	l.mu.Lock()
	s := l.slots[pod.UID]
	if s == nil {
		l.mu.Unlock()
		return
	}
	l.remove(s, endCompleted)
	wake := l.wakeable()
	l.mu.Unlock()
	wake()
}

// takenOnPurpose tells whether a pod is deleted to give its place to others.
func takenOnPurpose(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason == corev1.PodReasonPreemptionByScheduler || c.Reason == ReasonGiven
		}
	}
	return false
}

// reserve enters the place that was decided on for a member, and strikes out
// the one that it replaces.
func (l *Ledger) reserve(group types.NamespacedName, pod *corev1.Pod, node string) {
	l.mu.Lock()
	s := &slot{pod: pod, group: group, node: node, name: pod.Name}
	back := l.put(s)
	freed := back != nil && back.node != node
	if back == nil { // one that could not be bound before stands in for itself
		if old := l.replacedBy(s); old != nil {
			l.remove(old, endReplaced)
			freed = true
		}
	}
	wake := func() {}
	if freed {
		wake = l.wakeable()
	}
	l.mu.Unlock()
	wake()
}

// unreserve notes that a member could not be bound. Its place is kept like that
// of a dead member, but not over and over again.
func (l *Ledger) unreserve(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[pod.UID]
	if s == nil {
		return
	}
	if l.view.find(pod) == nil { // it is not tried again
		l.stale[s.node] = true
		l.lose(s, l.clock.Now())
		return
	}
	since, again := l.failing[pod.UID]
	if !again {
		since = l.clock.Now()
		l.failing[pod.UID] = since
	}
	if l.clock.Since(since) >= l.ttlOf(s) {
		l.remove(s, endExpired)
		return
	}
	l.stale[s.node] = true
	l.lose(s, since)
}

// replacedBy finds the loose slot of the same gang that a new member stands in
// for: the one of its name, or one of the same size, on the same node if there
// is one there. None is nil.
func (l *Ledger) replacedBy(s *slot) *slot {
	var best *slot
	bestScore := 0
	for _, old := range l.loose[s.group] {
		if old == s {
			continue
		}
		if score := likeness(old, s); score > bestScore || (score == bestScore && best != nil && score > 0 && old.pod.UID < best.pod.UID) {
			best, bestScore = old, score
		}
	}
	return best
}

// likeness is how well a member stands in for the one that had a slot; 0 for
// not at all.
func likeness(old, s *slot) int {
	score := 0
	if old.name == s.name {
		score = 4
	}
	if sameRequests(old.pod, s.pod) {
		score += 2
		if old.node == s.node {
			score++
		}
	}
	return score
}

func sameRequests(a, b *corev1.Pod) bool {
	options := resourcehelper.PodResourcesOptions{}
	return equality.Semantic.DeepEqual(resourcehelper.PodRequests(a, options), resourcehelper.PodRequests(b, options))
}

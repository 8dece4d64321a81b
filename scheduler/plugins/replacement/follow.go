package replacement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// ReasonGiven is the reason of the condition DisruptionTarget of a pod whose
// place our own policy takes from its gang; it is not kept.
const ReasonGiven = "GangRolledBack"

// follow adds the tracker's handlers to the informers.
func (t *Tracker) follow(live, ended cache.SharedInformer) error {
	if _, err := live.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { t.see(podOf(obj)) },
		UpdateFunc: func(old, obj any) {
			before, after := podOf(old), podOf(obj)
			if before != nil && after != nil && before.UID != after.UID {
				t.gone(before)
			}
			t.see(after)
		},
		DeleteFunc: func(obj any) { t.gone(podOf(obj)) },
	}); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if _, err := ended.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { t.over(podOf(obj)) },
		UpdateFunc: func(_, obj any) { t.over(podOf(obj)) },
	}); err != nil {
		return fmt.Errorf("watch ended pods: %w", err)
	}
	return nil
}

func podOf(obj any) *corev1.Pod {
	pod, _ := engine.EventObject[*corev1.Pod](obj)
	return pod
}

// see enters a pod that has a node.
func (t *Tracker) see(pod *corev1.Pod) {
	if pod == nil || pod.Spec.NodeName == "" {
		return
	}
	group, member := t.gangs.GroupOf(pod)
	if !member {
		return
	}
	defer t.claims.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	// One that leaves without a place has been replaced already, or it is not known
	// yet whether it has: see enterAll.
	if t.slots[pod.UID] != nil || pod.DeletionTimestamp == nil {
		t.enter(group, pod)
	}
}

// enter records where a pod is. The lock is held.
func (t *Tracker) enter(group types.NamespacedName, pod *corev1.Pod) {
	s := t.slots[pod.UID]
	if s == nil || s.node != pod.Spec.NodeName || s.group != group {
		s = &slot{pod: pod, group: group, node: pod.Spec.NodeName}
		t.put(s)
	}
	s.pod = pod
	delete(t.failing, pod.UID)
	s.given = takenOnPurpose(pod)
	if pod.DeletionTimestamp != nil {
		t.loosen(s)
	}
	if s.given { // a cycle may have seen the pod go before the informer reported why
		t.end(s, endReleased)
	}
}

// gone records the time of death of a pod.
func (t *Tracker) gone(pod *corev1.Pod) {
	if pod == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failing, pod.UID)
	if s := t.slots[pod.UID]; s != nil {
		t.stale[s.node] = true
		t.lose(s, t.clock.Now())
	}
}

// over strikes out a pod that has completed: it needs no replacement.
func (t *Tracker) over(pod *corev1.Pod) {
	if pod == nil || pod.Status.Phase != corev1.PodSucceeded {
		return
	}
	defer t.claims.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.slots[pod.UID]; s != nil {
		t.remove(s, endCompleted)
	}
}

// takenOnPurpose reports whether a pod is deleted to give its place to others.
func takenOnPurpose(pod *corev1.Pod) bool {
	c := gang.Disruption(pod)
	return c != nil && (c.Reason == corev1.PodReasonPreemptionByScheduler || c.Reason == ReasonGiven)
}

// reserve enters the place that was decided on for a member, and strikes out
// the one that it replaces.
func (t *Tracker) reserve(group types.NamespacedName, pod *corev1.Pod, node string) {
	defer t.claims.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &slot{pod: pod, group: group, node: node}
	if t.put(s) {
		return // it could not be bound before, and stands in for itself
	}
	if old := t.replacedBy(s); old != nil {
		t.remove(old, endReplaced)
	}
}

// unreserve records that a member could not be bound. Its place is kept like that
// of a dead member, but not over and over again.
func (t *Tracker) unreserve(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[pod.UID]
	if s == nil {
		return
	}
	if t.view().find(pod) == nil { // it is not tried again
		t.stale[s.node] = true
		t.lose(s, t.clock.Now())
		return
	}
	since, again := t.failing[pod.UID]
	if !again {
		since = t.clock.Now()
		t.failing[pod.UID] = since
	}
	if t.clock.Since(since) >= t.ttlOf(s) {
		t.remove(s, endExpired)
		return
	}
	t.stale[s.node] = true
	t.lose(s, since)
}

// replacedBy finds the loose slot of the same gang that a new member stands in
// for: the one of its name, or one of the same size, on the same node if there
// is one there. None is nil.
func (t *Tracker) replacedBy(s *slot) *slot {
	var best *slot
	bestScore := 0
	for _, old := range t.loose[s.group] {
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
	if old.pod.Name == s.pod.Name {
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
	return equality.Semantic.DeepEqual(request.Of(a), request.Of(b))
}

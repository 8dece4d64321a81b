package aging

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/order"
)

// engineGangs are the gangs that the engine knows.
type engineGangs struct{ engine *engine.Handle }

// EngineGangs returns the gangs that the engine knows, once it runs.
func EngineGangs(handle *engine.Handle) Source { return engineGangs{handle} }

// Gangs implements Source.
func (e engineGangs) Gangs() []Candidate {
	framework := e.engine.Framework()
	if framework == nil {
		return nil
	}
	groups, err := framework.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Lister().List(labels.Everything())
	if err != nil {
		return nil // a lister of a cache cannot fail
	}
	var all []Candidate
	for _, group := range groups {
		if engine.InTree(group) {
			continue // places for a part alone do not help it
		}
		state, err := framework.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
		if err != nil {
			continue // the engine has not seen its members yet
		}
		all = append(all, read(group, state))
	}
	return all
}

// read returns a gang. It waits for places if all the members that it needs are
// there, none is held back by a gate, and the engine has found no place for one of
// them. Since when it does is read from its pods, so that a scheduler that takes
// over goes on counting. What its members request is not read yet.
func read(group *schedulingv1beta1.PodGroup, state fwk.PodGroupState) Candidate {
	g := Candidate{Group: types.NamespacedName{Namespace: group.Namespace, Name: group.Name}}
	if policy := group.Spec.SchedulingPolicy.Gang; policy != nil {
		g.Members.MinMember = policy.MinCount
	}
	if state.ScheduledPodsCount() >= int(g.Members.MinMember) { // it runs, as most do
		g.Idle = true
		return g
	}
	g.Members.Topology = engine.TopologyOf(group)
	if group.Spec.Priority != nil {
		g.Priority = *group.Spec.Priority
	}
	for _, pod := range state.ScheduledPods() {
		g.Members.Bound = append(g.Members.Bound, pod.UID)
	}
	tried, unschedulable := false, false
	for _, pod := range state.UnscheduledPods() {
		if len(pod.Spec.SchedulingGates) > 0 || pod.DeletionTimestamp != nil {
			continue
		}
		g.Open = append(g.Open, pod)
		reason, since := order.Refused(pod)
		// A fault means nothing for whether the gang waits.
		tried = tried || reason == corev1.PodReasonUnschedulable || reason == corev1.PodReasonSchedulerError
		if reason != corev1.PodReasonUnschedulable {
			continue
		}
		unschedulable = true
		if !since.IsZero() && (g.Since.IsZero() || since.Before(g.Since)) {
			g.Since = since
		}
	}
	slices.SortFunc(g.Open, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	required, placed := int(g.Members.MinMember), len(g.Members.Bound)
	wants := placed < required && placed+len(g.Open) >= required
	g.Waits, g.Idle = wants && unschedulable, !wants || !tried
	return g
}

// age has the times at which a gang was seen to wait or not.
type age struct {
	// idle is when it was last seen not to want places, first when it was first
	// seen to wait. Either is zero if it was not.
	idle, first time.Time
}

// waiting lists the gangs that wait, with since when they do. Their pods record since
// when they have no place, which they have not from the start: as long as they
// were held back by a gate, or members were missing, does not count. That they
// were is known to whoever saw it; a scheduler that takes over goes by the pods.
func (c *Controller) waiting() []Candidate {
	all, now := c.source.Gangs(), c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	ages := make(map[types.NamespacedName]age, len(all))
	var waiting []Candidate
	for _, g := range all {
		a := c.ages[g.Group]
		switch {
		case g.Idle:
			a = age{idle: now}
		case g.Waits:
			if g.Since.Before(a.idle) {
				g.Since = a.idle
			}
			if g.Since.IsZero() {
				if a.first.IsZero() {
					a.first = now
				}
				g.Since = a.first
			}
			waiting = append(waiting, g)
		}
		ages[g.Group] = a
	}
	c.ages = ages
	return waiting
}

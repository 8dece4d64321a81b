package planner

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// lead brings the member to the front that has to come first, and those that have to be with others to the end. The engine takes
// the first of a gang before there is a plan.
func (c *cycle) lead() {
	rank := func(m *framework.QueuedPodInfo) int {
		switch {
		case m.Pod.UID == c.first:
			return 0
		case follows(m):
			return 2
		}
		return 1
	}
	slices.SortStableFunc(c.members(), func(a, b *framework.QueuedPodInfo) int { return cmp.Compare(rank(a), rank(b)) })
}

// follows reports whether a pod has to be where others are, and its own like do not count.
func follows(m *framework.QueuedPodInfo) bool {
	return slices.ContainsFunc(m.RequiredAffinityTerms, func(term fwk.AffinityTerm) bool { return !term.Matches(m.Pod, nil) })
}

// order brings the members that have not come up yet into the order of the plan, those without a place last. requester is up: those
// before it have been refused already, before a plan was requested. The engine writes down who has which result by position,
// and does so for good before it rehearses a preemption: then it keeps a copy in the order of before, and goes through the new one.
func (c *cycle) order(p *plan, requester *corev1.Pod, rehearsal bool) {
	members := c.members()
	next := c.position(requester) + 1
	if len(p.nodes) == 0 || next == 0 || next >= len(members) {
		return
	}
	if rehearsal {
		c.gang.QueuedPodInfos[c.key()] = slices.Clone(members)
	}
	rank := make(map[types.UID]int, len(p.sequence))
	for i, uid := range p.sequence {
		rank[uid] = i
	}
	at := func(m *framework.QueuedPodInfo) int {
		if _, planned := p.nodes[m.Pod.UID]; !planned {
			return len(members)
		}
		return rank[m.Pod.UID]
	}
	slices.SortStableFunc(members[next:], func(a, b *framework.QueuedPodInfo) int { return cmp.Compare(at(a), at(b)) })
}

// position is where a member is in the engine's order, -1 if it is not there.
func (c *cycle) position(pod *corev1.Pod) int {
	return slices.IndexFunc(c.members(), func(m *framework.QueuedPodInfo) bool { return m.Pod.UID == pod.UID })
}

// misled reports whether a member was refused only because it came before the one that has to come first. The gang is then tried
// again in that order.
func (p *Planner) misled(pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.now
	if c == nil || c.verdict == nil || len(c.verdict.sequence) == 0 {
		return false
	}
	first := c.verdict.sequence[0]
	if c.requester != pod.UID || pod.UID == first || c.first == first {
		return false
	}
	p.leads[c.group], c.changed = first, true
	return true
}

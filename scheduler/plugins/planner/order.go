package planner

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// sortMembers moves the member that has to come first to the front, those with required affinity to others to the end, and after them those that the engine refuses
// before it looks at a node. It tries the first member of a gang before there is a plan, and ends the attempt when too few are left.
func (c *cycle) sortMembers(refused func(*corev1.Pod) bool) {
	rank := map[types.UID]int{}
	for _, m := range c.members() {
		switch {
		case m.Pod.UID == c.first:
			rank[m.Pod.UID] = 0
		case refused(m.Pod):
			rank[m.Pod.UID] = 3
		case follows(m):
			rank[m.Pod.UID] = 2
		default:
			rank[m.Pod.UID] = 1
		}
	}
	slices.SortStableFunc(c.members(), func(a, b *framework.QueuedPodInfo) int { return cmp.Compare(rank[a.Pod.UID], rank[b.Pod.UID]) })
}

// follows reports whether a pod has required affinity to pods other than its own replicas.
func follows(m *framework.QueuedPodInfo) bool {
	return slices.ContainsFunc(m.RequiredAffinityTerms, func(term fwk.AffinityTerm) bool { return !term.Matches(m.Pod, nil) })
}

// order sorts the members after requester as they are in the plan, those without a node last. Members before requester were refused before
// there was a plan. The engine records results by position, and keeps the slice when it dry-runs a preemption: the dry run therefore
// gets a copy in the new order, and the recorded results keep the old one.
func (c *cycle) order(p *plan, requester *corev1.Pod, dryRun bool) {
	members := c.members()
	next := c.position(requester) + 1
	if len(p.nodes) == 0 || next == 0 || next >= len(members) {
		return
	}
	if dryRun {
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

// position returns the index of a member in the engine's order, -1 if it is not there.
func (c *cycle) position(pod *corev1.Pod) int {
	return slices.IndexFunc(c.members(), func(m *framework.QueuedPodInfo) bool { return m.Pod.UID == pod.UID })
}

// refusedForOrder reports whether a member was refused only because it came before the one that has to come first. The gang is then tried
// again in that order.
func (p *Planner) refusedForOrder(pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.current
	if c == nil || c.verdict == nil || len(c.verdict.sequence) == 0 {
		return false
	}
	first := c.verdict.sequence[0]
	if c.requester != pod.UID || pod.UID == first || c.first == first {
		return false
	}
	if c.gangChanged = true; !c.gone {
		p.firstMembers[c.group] = first
	}
	return true
}

package planner

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// gain is the change by an event that may help gangs without a placement.
type gain struct {
	// room: resources came free, or more nodes may be used.
	room bool
	// amounts are what came free, by resource; nil if that is not known.
	amounts map[corev1.ResourceName]int64
	// at is the room on the one node that it came free on; nil where it may be anywhere.
	at *roomFor
	// relabelled: a pod with a node has other labels, by which terms of members may select it, or not any more.
	relabelled bool
}

// gain returns the gain of an event, with the node that it is about.
func (p *Planner) gain(event fwk.ClusterEvent, before, after any) gain {
	g := gainOf(event, before, after)
	if !g.room {
		return g // what has left the node is for the event that follows it
	}
	switch event.Resource {
	case fwk.Node:
		if node, ok := after.(*corev1.Node); ok {
			g.at = p.roomOn(node.Name)
		}
	case fwk.AssignedPod:
		if pod, ok := before.(*corev1.Pod); ok {
			if at := p.roomOn(pod.Spec.NodeName); after == nil && !placement.KeepsApart(pod) {
				g.at = at // the room is there, and nowhere else
			}
		}
	}
	return g
}

// roomOn returns the room that an event has made on a node; nil if it may have made some elsewhere, too, or the node is not known.
func (p *Planner) roomOn(name string) *roomFor {
	was, now, ok := p.contents.Take(name)
	if !ok {
		return nil
	}
	moved := was.Node != nil && !maps.Equal(was.Node.Labels, now.Node.Labels)
	if moved && (slices.ContainsFunc(now.Pods, placement.KeepsApart) || slices.ContainsFunc(now.Assumed, placement.KeepsApart)) {
		return nil // they keep others off another domain now
	}
	return newRoomFor(was, now, moved)
}

// gainOf returns the gain of an event.
func gainOf(event fwk.ClusterEvent, before, after any) gain {
	switch event.Resource {
	case fwk.Node:
		now, ok := after.(*corev1.Node)
		if !ok {
			return gain{} // a node that is gone frees nothing
		}
		was, _ := before.(*corev1.Node)
		return gain{room: true, amounts: moreAllocatable(was, now)}
	case fwk.AssignedPod:
		was, ok := before.(*corev1.Pod)
		if !ok {
			return gain{} // a new pod uses resources
		}
		now, _ := after.(*corev1.Pod)
		freed := lessRequested(was, now)
		return gain{room: now == nil || len(freed) > 0, amounts: freed, relabelled: now != nil && !maps.Equal(was.Labels, now.Labels)}
	case fwk.DeviceClass, fwk.ResourceSlice, fwk.WildCard:
		return gain{room: true} // devices may provide a resource now; or all gangs are to be tried
	default:
		return gain{} // no proof rests on it
	}
}

func moreAllocatable(was, now *corev1.Node) map[corev1.ResourceName]int64 {
	more := map[corev1.ResourceName]int64{}
	for name, quantity := range now.Status.Allocatable {
		amount := request.Amount(name, quantity)
		if was != nil {
			amount -= request.Amount(name, was.Status.Allocatable[name])
		}
		if amount > 0 {
			more[name] = amount
		}
	}
	return more
}

func lessRequested(was, now *corev1.Pod) map[corev1.ResourceName]int64 {
	less := map[corev1.ResourceName]int64{}
	var still corev1.ResourceList
	if now != nil {
		still = request.OfRunning(now)
	}
	for name, quantity := range request.OfRunning(was) {
		if amount := request.Amount(name, quantity) - request.Amount(name, still[name]); amount > 0 {
			less[name] = amount
		}
	}
	if now == nil {
		less[corev1.ResourcePods] = 1
	}
	return less
}

// observe requeues the parked gangs that an event may help, and returns those that are to be tried now. The engine's cache has the
// change already.
func (p *Planner) observe(event fwk.ClusterEvent, before, after any) []*parkedGang {
	if event.Resource == fwk.UnscheduledPod || event.Resource == fwk.PodGroup {
		return nil // the queue handles members and groups of the gang itself
	}
	return p.gained(p.gain(event, before, after))
}

// gained is observe for what an event has brought.
func (a *Attempts) gained(g gain) []*parkedGang {
	if g.at != nil {
		a.mu.Lock()
		roles := a.waiting.roles()
		a.mu.Unlock()
		for _, role := range roles { // without the lock: it takes a while
			g.at.of(role)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil {
		a.current.gained(g)
	}
	return a.requeueAll(a.waiting.helpedBy(g), causeCluster)
}

// maxGains is how many events are kept that come during one attempt.
const maxGains = 16

// gained records an event during the attempt.
func (c *cycle) gained(g gain) {
	c.clusterChanged = true
	switch {
	case !g.room && !g.relabelled || c.roomFreed:
	case g.room && g.at == nil || len(c.gains) == maxGains:
		c.roomFreed = true
	default:
		c.gains = append(c.gains, g)
	}
}

// helped reports whether the gang under way, which has no placement, may have one after what happened during the attempt.
func (c *cycle) helped() bool {
	return c.roomFreed || slices.ContainsFunc(c.gains, c.parked.helpedBy)
}

// helpedBy reports whether the gang may have a placement after an event. Of gangs that are parked [waiting.helpedBy] reports the same.
func (m *parkedGang) helpedBy(g gain) bool {
	switch {
	case g.relabelled && m.wants == nil && len(m.lacks) == 0:
		return true
	case !g.room || g.amounts == nil:
		return g.room
	case len(m.lacks) > 0:
		return m.has(g)
	case m.wants == nil || g.at == nil:
		return true
	}
	return m.wants.helps(g.at)
}

// has reports whether what came free is enough of what all nodes together are short of, with what came before.
func (m *parkedGang) has(g gain) bool {
	enough := true
	for name, more := range g.amounts {
		if m.lacks[name] > 0 {
			m.lacks[name] -= more
		}
	}
	for _, lack := range m.lacks {
		enough = enough && lack <= 0
	}
	return enough
}

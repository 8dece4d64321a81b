package planner

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// gain is the change by an event that may help gangs without a placement.
type gain struct {
	// room: resources came free, or more nodes may be used.
	room bool
	// amounts are what came free, by resource; nil if that is not known.
	amounts map[corev1.ResourceName]int64
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
		return gain{room: now == nil || len(freed) > 0, amounts: freed}
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
func (a *Attempts) observe(event fwk.ClusterEvent, before, after any) []*parkedGang {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.parkedGangs) == 0 && a.current == nil || event.Resource == fwk.UnscheduledPod || event.Resource == fwk.PodGroup {
		return nil // the queue handles members and groups of the gang itself
	}
	g := gainOf(event, before, after)
	if a.current != nil {
		a.current.clusterChanged, a.current.roomFreed = true, a.current.roomFreed || g.room
	}
	var woken []*parkedGang
	for group, m := range a.parkedGangs {
		if !m.proven || m.helpedBy(g) {
			woken = append(woken, a.requeue(group, m, causeCluster)...)
		}
	}
	return woken
}

// helpedBy reports whether the gang may have a placement after an event.
func (m *parkedGang) helpedBy(g gain) bool {
	if !g.room || len(m.lacks) == 0 || g.amounts == nil {
		return g.room
	}
	enough := true
	for name, more := range g.amounts {
		if _, lacking := m.lacks[name]; lacking {
			m.lacks[name] -= more
		}
	}
	for _, lack := range m.lacks {
		enough = enough && lack <= 0
	}
	return enough
}

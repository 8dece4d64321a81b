package planner

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// gain is what an event may bring to a gang without a placement.
type gain struct {
	// room: there is more of something, or more nodes may use it.
	room bool
	// amounts are how much more there is of each resource, if that is all that can matter; nil if it is not known.
	amounts map[corev1.ResourceName]int64
}

// gainOf weighs an event.
func gainOf(event fwk.ClusterEvent, before, after any) gain {
	switch event.Resource {
	case fwk.Node:
		now, ok := after.(*corev1.Node)
		if !ok {
			return gain{} // a node that is gone takes its room along
		}
		was, _ := before.(*corev1.Node)
		return gain{room: true, amounts: moreAllocatable(was, now)}
	case fwk.AssignedPod:
		was, ok := before.(*corev1.Pod)
		if !ok {
			return gain{} // a pod that came uses room
		}
		now, _ := after.(*corev1.Pod)
		freed := lessRequested(was, now)
		return gain{room: now == nil || len(freed) > 0, amounts: freed}
	case fwk.DeviceClass, fwk.ResourceSlice, fwk.WildCard:
		return gain{room: true} // a resource may be had from devices now; or all are to be tried
	default:
		return gain{} // what proofs do not rest on
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
	// What a running pod is charged is the larger of what it requests and what it has, while it is being resized.
	charged := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	less := map[corev1.ResourceName]int64{}
	var still corev1.ResourceList
	if now != nil {
		still = resourcehelper.PodRequests(now, charged)
	}
	for name, quantity := range resourcehelper.PodRequests(was, charged) {
		if amount := request.Amount(name, quantity) - request.Amount(name, still[name]); amount > 0 {
			less[name] = amount
		}
	}
	if now == nil {
		less[corev1.ResourcePods] = 1
	}
	return less
}

// observe finds the parked gangs that an event helps, and returns those that are to be tried again now. The engine's cache has
// the change already.
func (a *Attempts) observe(event fwk.ClusterEvent, before, after any) []*memo {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.memos) == 0 && a.now == nil || event.Resource == fwk.UnscheduledPod || event.Resource == fwk.PodGroup {
		return nil // members of its own, and its own group, are looked after elsewhere
	}
	g := gainOf(event, before, after)
	if a.now != nil {
		a.now.stir, a.now.news = true, a.now.news || g.room
	}
	var woken []*memo
	for group, m := range a.memos {
		if !m.proven || m.helped(g) {
			woken = append(woken, a.help(group, m, causeCluster)...)
		}
	}
	return woken
}

// helped reports whether the gang may have a placement now.
func (m *memo) helped(g gain) bool {
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

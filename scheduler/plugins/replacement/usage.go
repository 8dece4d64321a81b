package replacement

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// usage is what the members of one namespace request that have a place, and the most that they did since it last
// lost none of them. What is claimed for a namespace costs it no quota, and pods are its users' to delete and create again: so no more is
// claimed for it than it once had in places, which its quota admitted.
type usage struct{ placed, peak amounts }

// amounts are what pods request: milli-CPUs, bytes of memory, and all extended resources together.
type amounts struct{ cpu, memory, devices, pods int64 }

func amountsOf(pod *corev1.Pod) amounts {
	a := amounts{pods: 1}
	for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		switch name {
		case corev1.ResourceCPU:
			a.cpu = quantity.MilliValue()
		case corev1.ResourceMemory:
			a.memory = quantity.Value()
		case corev1.ResourceEphemeralStorage:
		default:
			a.devices += quantity.Value()
		}
	}
	return a
}

func (a amounts) plus(b amounts, n int64) amounts {
	return amounts{a.cpu + n*b.cpu, a.memory + n*b.memory, a.devices + n*b.devices, a.pods + n*b.pods}
}

func (a amounts) within(b amounts) bool {
	return a.cpu <= b.cpu && a.memory <= b.memory && a.devices <= b.devices && a.pods <= b.pods
}

// count adds n times the place of a slot to what its namespace has. The lock is held.
func (t *Tracker) count(s *slot, n int64) {
	u := t.usages[s.group.Namespace]
	if u == nil {
		u = &usage{}
		t.usages[s.group.Namespace] = u
	}
	u.placed = u.placed.plus(s.requests, n)
	u.peak = amounts{max(u.peak.cpu, u.placed.cpu), max(u.peak.memory, u.placed.memory), max(u.peak.devices, u.placed.devices), max(u.peak.pods, u.placed.pods)}
}

// forgetPeaks starts the peaks of all namespaces again that have lost no member for whose place a claim may be due.
func (t *Tracker) forgetPeaks() {
	losing := map[string]bool{}
	for group := range t.loose {
		losing[group.Namespace] = true
	}
	for namespace, u := range t.usages {
		if losing[namespace] {
			continue
		}
		if u.peak = u.placed; u.placed == (amounts{}) {
			delete(t.usages, namespace)
		}
	}
}

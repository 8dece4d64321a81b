package replacement

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// usage is the requests of the members of one namespace that have a place, and the most that they were since it last
// lost none of them. What is claimed for a namespace costs it no quota, and pods are its users' to delete and create again: so no more is
// claimed for it than it once had in places, which its quota admitted.
type usage struct{ placed, peak amounts }

// amounts are the requests of pods for each resource, and how many they are. Zero amounts are left out.
type amounts map[corev1.ResourceName]int64

func amountsOf(pod *corev1.Pod) amounts {
	a := amounts{corev1.ResourcePods: 1}
	for name, quantity := range request.Of(pod) {
		if amount := request.Amount(name, quantity); amount != 0 && name != corev1.ResourceEphemeralStorage {
			a[name] = amount
		}
	}
	return a
}

func (a amounts) plus(b amounts, n int64) amounts {
	sum := amounts{}
	maps.Copy(sum, a)
	for name, amount := range b {
		if sum[name] += n * amount; sum[name] == 0 {
			delete(sum, name)
		}
	}
	return sum
}

func (a amounts) within(b amounts) bool {
	for name, amount := range a {
		if amount > b[name] {
			return false
		}
	}
	return true
}

// atLeast is the larger of two amounts, of each resource.
func (a amounts) atLeast(b amounts) amounts {
	larger := amounts{}
	maps.Copy(larger, a)
	for name, amount := range b {
		larger[name] = max(larger[name], amount)
	}
	return larger
}

// count adds n times the place of a slot to what its namespace has. The lock is held.
func (t *Tracker) count(s *slot, n int64) {
	u := t.usages[s.group.Namespace]
	if u == nil {
		u = &usage{}
		t.usages[s.group.Namespace] = u
	}
	u.placed = u.placed.plus(s.requests, n)
	u.peak = u.peak.atLeast(u.placed)
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
		if u.peak = u.placed; len(u.placed) == 0 {
			delete(t.usages, namespace)
		}
	}
}

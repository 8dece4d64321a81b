package replacement

import "github.com/gangctl/gangctl/scheduler/plugins/claims"

// usage is the requests of the members of one namespace that have a place, and the most that they were since it last
// lost none of them. What is claimed for a namespace costs it no quota, and pods are its users' to delete and create again: so no more is
// claimed for it than it once had in places, which its quota admitted.
type usage struct{ placed, peak claims.Amounts }

// count adds n times the place of a slot to what its namespace has. The lock is held.
func (t *Tracker) count(s *slot, n int64) {
	u := t.usages[s.group.Namespace]
	if u == nil {
		u = &usage{}
		t.usages[s.group.Namespace] = u
	}
	u.placed = u.placed.Plus(s.requests, n)
	u.peak = u.peak.AtLeast(u.placed)
	if n < 0 {
		t.lower[s.group.Namespace] = true
	}
}

// forgetPeaks starts the peaks of namespaces again that have lost no member for whose place a claim may be due. Only those that have less than their peak are looked
// at: this is done in every cycle.
func (t *Tracker) forgetPeaks() {
	if len(t.lower) == 0 {
		return
	}
	losing := map[string]bool{}
	for group := range t.loose {
		losing[group.Namespace] = true
	}
	for namespace := range t.lower {
		if losing[namespace] {
			continue
		}
		delete(t.lower, namespace)
		u := t.usages[namespace]
		if u.peak = u.placed; len(u.placed) == 0 {
			delete(t.usages, namespace)
		}
	}
}

package usage

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// idleMinutes are the device-minutes that members have held so far for a gang that is not whole: from when they started, or from
// when the gang lost a member, if that was later.
func (l *ledger) idleMinutes(g *gang.Gang) float64 {
	if g.End != nil || whole(g) {
		return 0
	}
	lost := l.brokenSince(g)
	var minutes float64
	for _, m := range g.Members {
		if !m.Bound() {
			continue
		}
		since := startOf(m.Pod)
		if lost.After(since) {
			since = lost
		}
		minutes += float64(l.charge(m.Pod).AllDevices()) * l.since(since) / 60
	}
	return minutes
}

// startOf is when a pod began to hold its node, as well as that is known.
func startOf(p *corev1.Pod) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return cmp.Or(gang.PlacedAt(p), p.CreationTimestamp.Time)
}

// brokenSince is the moment since when fewer members are there than the gang needs: those above its minimum may be absent from the start.
// Of a gang that has what it needs it is the latest absence. It is zero where nothing shows it.
func (l *ledger) brokenSince(g *gang.Gang) time.Time {
	var known []time.Time
	for _, m := range g.Members {
		if at := l.absentSince(m); !at.IsZero() {
			known = append(known, at)
		}
	}
	if len(known) == 0 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	absent := g.Total() - g.Count(gang.Starting, gang.Running, gang.Succeeded)
	spare := int(g.Total()-g.Min) - (int(absent) - len(known)) // absences of unknown time count as the first
	return known[min(max(0, spare), len(known)-1)]
}

// absentSince is when a member went away: its replacement was created then, or it ended, was deleted, or its node went away. It is zero for one
// that is there, and where nothing shows it.
func (l *ledger) absentSince(m gang.Member) time.Time {
	switch m.State {
	case gang.Pending, gang.Gated:
		return m.Pod.CreationTimestamp.Time
	case gang.Failed:
		return gang.EndOf(m.Pod)
	case gang.Terminating:
		return view.DeletionRequested(m.Pod)
	case gang.Lost:
		return l.w.NodeLostAt(m.Pod.Spec.NodeName)
	}
	return time.Time{}
}

// whole reports whether as many members as the gang needs have a node that works, or are done.
func whole(g *gang.Gang) bool {
	return g.Count(gang.Starting, gang.Running, gang.Succeeded) >= min(g.Min, g.Total())
}

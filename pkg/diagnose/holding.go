package diagnose

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// holding is how many devices the members of a gang that does not run hold for nothing, and since when, where that shows.
func holding(w *view.View, r *stage.Diagnosis) (h answer.Holding) {
	n, up := stage.IdleDevices(r.Gang)
	if n == 0 || !stage.RunAgain(r.Gang).IsZero() || r.Primary != nil && r.Primary.Code == answer.ContainersStarting && busy(r.Gang) {
		return h
	}
	h.GPUs = n
	if since := idleSince(w, r, up); !since.IsZero() {
		h.Since = &since
	}
	return h
}

// busy reports whether as many members as the gang needs have all their containers up: one that is not ready yet may load what it works on, and does not idle.
func busy(g *gang.Gang) bool {
	up := g.Count(gang.Running, gang.Succeeded)
	for _, m := range g.Members {
		down := func(s corev1.ContainerStatus) bool { return s.State.Running == nil }
		if m.State == gang.Starting && len(m.Pod.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(m.Pod.Status.ContainerStatuses, down) {
			up++
		}
	}
	return up >= g.Min
}

// idleSince is since when the members that are up idle, of which the last came up at a time: since then, or, where they worked together before, since the first of the others
// left, or the job ended. It is zero where that does not show.
func idleSince(w *view.View, r *stage.Diagnosis, up time.Time) time.Time {
	if end := r.Gang.End; end != nil {
		if end.At.IsZero() {
			return end.At
		}
		return view.Later(up, end.At)
	}
	left, p := firstLeft(w, r.Gang), r.Primary
	switch {
	case !left.IsZero():
		if p != nil && p.Stage == answer.StageLife && p.Since != nil && p.Since.Before(left) {
			left = *p.Since // the loss that the answer is about: of some members nothing shows it but their node
		}
		return view.Later(up, left)
	case p == nil, p.Stage == answer.StageStart && neverRan(r.Gang):
		return up
	case p.Since == nil && p.Stage == answer.StageLife:
		return time.Time{} // a loss of which the time does not show
	case p.Since == nil:
		return up
	}
	return view.Later(up, *p.Since)
}

// firstLeft is when the first of the members left that are not up, as far as it shows: by its pod, or that which follows it, or by the first refusal of such a pod; zero if
// it shows of none.
func firstLeft(w *view.View, g *gang.Gang) (first time.Time) {
	add := func(at time.Time) {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	for _, m := range g.Members {
		switch m.State {
		case gang.Terminating:
			at := view.DeletionRequested(m.Pod)
			if lost := w.NodeLostAt(m.Pod.Spec.NodeName); !lost.IsZero() && lost.Before(at) {
				at = lost
			}
			add(at)
		case gang.Failed:
			add(w.EndedAt(m.Pod))
		case gang.Pending, gang.Gated:
			add(m.Pod.CreationTimestamp.Time)
		case gang.Lost:
			add(w.NodeLostAt(m.Pod.Spec.NodeName))
		default: // it is up, or there is no pod
		}
	}
	if g.Count(gang.Missing) > 0 {
		for _, r := range refusal.Of(w, g) {
			add(r.First)
		}
	}
	return first
}

// neverRan reports whether no container of some member that has a node has run yet: its init containers have not ended, or the runtime could not start it.
func neverRan(g *gang.Gang) bool {
	ran := func(t *corev1.ContainerStateTerminated) bool {
		return t != nil && t.Reason != "StartError" && t.Reason != "ContainerCannotRun"
	}
	return slices.ContainsFunc(g.Members, func(m gang.Member) bool {
		return m.State == gang.Starting && !slices.ContainsFunc(m.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.State.Running != nil || ran(s.State.Terminated) || ran(s.LastTerminationState.Terminated)
		})
	})
}

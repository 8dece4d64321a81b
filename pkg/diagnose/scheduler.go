package diagnose

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// fresh is how old a scheduler's message may be to count against a computation.
const fresh = 2 * time.Minute

// scheduler is what the gang's scheduler reported last, and whether it agrees. A message that only passes on the refusal of a sibling
// does not count.
func scheduler(w *view.View, r *stage.Diagnosis) *answer.Scheduler {
	g := r.Gang
	s := &answer.Scheduler{Name: g.Scheduler}
	if seen := component.FindScheduler(w, g.Scheduler, g.Meta.Namespace).LastSeen; !seen.IsZero() {
		s.LastSeen = &seen
	}
	message, at, refuses := lastMessage(w, g)
	if message == "" {
		return s
	}
	s.Message = message
	if at.IsZero() {
		return s
	}
	s.MessageAt, s.LastAttempt = &at, &at
	s.Stale = changedSince(w, at)
	room := r.Placement != nil && r.Placement.Fits() && r.Primary != nil && r.Primary.Code != answer.Fits && r.Primary.Code != answer.FitsNotPlaced
	switch {
	case !refuses && !unschedulable.MatchString(message) || r.Verdict == answer.Uncertain || g.Deleted():
	case r.Primary == nil: // about a member that the gang does without, or before it ran
	case room && ofNodes.MatchString(message): // about what is not the reason here, and perhaps about a part of the gang
	default:
		agrees := r.Primary.Code != answer.Fits && r.Primary.Code != answer.FitsNotPlaced && !otherReason(r, message)
		s.Agrees = &agrees
	}
	return s
}

// otherReason reports whether a message about every node names no resource that is short, while that is the reason which was computed. A rule that keeps the gang from what is
// free is none.
func otherReason(r *stage.Diagnosis, message string) bool {
	if r.Primary.Facts["rule"] != nil {
		return false
	}
	short := r.Primary.Code == answer.NodesBusy || r.Primary.Code == answer.Fragmented || strings.HasPrefix(string(r.Primary.Code), string(answer.Insufficient("")))
	return short && ofNodes.MatchString(message) && byRule.MatchString(message) && !lacksResource.MatchString(message)
}

// byRule recognises that a scheduler keeps a pod off nodes by a rule, lacksResource that nodes lack something.
var (
	byRule        = regexp.MustCompile(`\d+ node\(s\) (?:had|didn't (?:match|satisfy|have free ports)|were)`)
	lacksResource = regexp.MustCompile(`(?i)insufficient|enough|too many|exceed|cannot allocate|reserved|busy`)
)

// unschedulable recognises that a scheduler found no room.
var unschedulable = regexp.MustCompile(`(?i)insufficient|\b0/\d+ nodes|unschedulable|overused|cannot find enough|cannot be satisfied`)

// ofNodes recognises that it was for lack of room on nodes.
var ofNodes = regexp.MustCompile(`(?i)\b0/\d+ nodes`)

// echo recognises messages that only pass on what befell a sibling.
var echo = regexp.MustCompile(`failed recently|optimistic rejection|rejection in Unreserve|gets rejected due to`)

// lastMessage is the message that explains most: the latest about the pods or their group that is no echo. Refuses reports whether it is why they have no place, whatever
// its words are.
func lastMessage(w *view.View, g *gang.Gang) (best string, at time.Time, refuses bool) {
	consider := func(text string, when time.Time, why bool) {
		text = strings.TrimSpace(text)
		if text == "" {
			return
		}
		better := best == "" || echo.MatchString(best) && !echo.MatchString(text)
		if better || !echo.MatchString(text) && when.After(at) {
			best, at, refuses = text, when, why
		}
	}
	for _, e := range w.PodEvents(g) {
		if e.Refuses() {
			consider(e.Message, e.Last, true)
		}
	}
	if d := g.Decl; d != nil {
		for _, condition := range d.Conditions {
			consider(condition.Message, condition.At, true)
		}
		for _, e := range w.GroupEvents(d) {
			consider(e.Message, e.Last, e.Warning && e.Reason == "Unschedulable")
		}
	}
	if best != "" {
		return best, at, refuses
	}
	for _, m := range g.Members {
		if m.Pod == nil {
			continue
		}
		if c := gang.Refusal(m.Pod); c != nil && c.Reason != corev1.PodReasonSchedulingGated { // which is the API server's, from the creation of the pod
			consider(c.Message, c.LastTransitionTime.Time, c.Reason == corev1.PodReasonUnschedulable)
		}
	}
	return best, at, refuses
}

// changedSince reports whether something that matters happened after a moment, or whether the moment is long ago.
func changedSince(w *view.View, at time.Time) bool {
	return w.Age(at) > fresh || view.Once(w, "last change", func() time.Time { return lastChange(w) }).After(at)
}

// lastChange is when something last happened that matters: a pod with a node came or ended, a node came or changed its state.
func lastChange(w *view.View) time.Time {
	last := w.RoomSince()
	for _, p := range w.Snap.Pods {
		if p.Spec.NodeName != "" && p.Status.StartTime != nil {
			last = view.Later(last, p.Status.StartTime.Time)
		}
	}
	return last
}

package belowmin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
)

// observation is a gang as one reconciliation sees it.
type observation struct {
	key     gang.Key
	pods    []*corev1.Pod
	members members // those of the pods
	state   *state  // what is kept of it
	args    Args    // of its profile
	// boundToDeletedNodes: members were bound to nodes that were gone already.
	boundToDeletedNodes bool
}

// verdict is the decision about a gang below its minimum.
type verdict struct {
	never bool               // it was never whole
	short *planner.Shortfall // why it cannot be completed now; nil if that is not proven
	grace time.Duration      // how long it may stay below its minimum
}

// reconcileBelowMin applies the policy when the grace has passed.
func (c *Controller) reconcileBelowMin(ctx context.Context, o observation) error {
	v, due := c.judge(o)
	if !due {
		return nil
	}
	policy, invalid := c.PolicyOf(o.key)
	if invalid != "" {
		c.report(o, ReasonFailed, fmt.Sprintf("annotation %s: %q is none of %s, %s and %s; taking it for %s", Annotation, invalid, Hold, Evict, Ignore, policy))
	}
	switch {
	case o.state.evicting:
		return c.evictAll(ctx, o)
	case policy == Ignore:
		return nil
	case v.never || policy == Evict:
		return c.giveBack(ctx, o, v)
	case invalid == "":
		c.hold(o, v)
	}
	return nil
}

// judge reports whether the grace of a gang has passed. While members are in flight it does
// not, and the time does not count: it proves nothing about the gang if the API server is
// slow. An eviction that has begun is always due.
func (c *Controller) judge(o observation) (v verdict, due bool) {
	s, m, now := o.state, o.members, c.Clock.Now()
	spent, flying := c.inFlightTime(o.key.VirtualGroup())
	if s.below.IsZero() {
		s.below, s.first, s.spent = now, now, spent
	}
	v.never = o.boundToDeletedNodes || c.boundSoFar(o.key.VirtualGroup()) < m.required && s.neverWhole(m, o.pods, flying, recentGraces*o.args.StartGrace.Duration)
	v.short = c.shortfall(o, v.never)
	v.grace = o.args.graceOf(v.never, v.short != nil, s.evictions)
	switch {
	case s.evicting:
		return v, true
	case flying:
		return v, false // it is reconciled again when the last one is not in flight any more
	}
	left := v.grace - (now.Sub(s.below) - (spent - s.spent))
	if left <= 0 {
		return v, true
	}
	if v.never { // it may be proven meanwhile that it cannot be completed, which brings no event
		left = min(left, pollInterval)
	}
	c.queue.AddAfter(o.key, left)
	return v, false
}

// shortfall returns why a gang that was never whole cannot be completed now; nil if
// that is not proven of the members that have places now, or if these could not be
// evicted: that is not tried again and again.
func (c *Controller) shortfall(o observation, never bool) *planner.Shortfall {
	m := o.members
	switch {
	case !never || o.state.refused || c.Shortfall == nil:
		return nil
	case len(m.lost) > 0:
		return &planner.Shortfall{Placed: len(m.placed), Why: m.lostOn()}
	}
	if short, ok := c.Shortfall(o.key.VirtualGroup()); ok && short.Placed == len(m.placed) {
		return &short
	}
	return nil
}

// giveBack has all members give their nodes back, once the API server confirms that the gang is below its minimum.
func (c *Controller) giveBack(ctx context.Context, o observation, v verdict) error {
	sure, err := c.confirmed(ctx, o.members)
	if err != nil {
		return err
	}
	if !sure {
		c.queue.AddAfter(o.key, pollInterval)
		return nil
	}
	if _, flying := c.inFlightTime(o.key.VirtualGroup()); flying {
		return nil // one was assigned a node meanwhile
	}
	if v.never {
		because := fmt.Sprintf("for %s, %s", v.grace, o.members.unbound())
		if v.short != nil {
			because = "the others cannot have any now: " + v.short.Why
		}
		c.begin(o, actionRolledBack)
		c.report(o, ReasonRolledBack, fmt.Sprintf("%s, and it was never whole: %s. All give their places back, and the gang waits as a whole",
			o.members.places(), because))
	} else {
		c.begin(o, actionEvicted)
		c.report(o, ReasonEvicted, fmt.Sprintf("%s, for %s. By policy %s all give their places back, and the gang waits as a whole",
			o.members.places(), v.grace, Evict))
	}
	return c.evictAll(ctx, o)
}

// begin starts an eviction: from now on no member joins those that are to leave.
func (c *Controller) begin(o observation, action string) {
	s := o.state
	s.evicting, s.begun, s.rollback = true, false, action == actionRolledBack
	s.evictions++
	s.owners = owners(o.members.placed)
	c.actions.WithLabelValues(action).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evicting[o.key.VirtualGroup()] = true
}

// hold leaves the members where they are.
func (c *Controller) hold(o observation, v verdict) {
	if c.report(o, ReasonBelowMin, fmt.Sprintf("%s, for %s. By policy %s they keep them; annotation %s: %s would give them back",
		o.members.places(), v.grace, Hold, Annotation, Evict)) {
		c.actions.WithLabelValues(actionHeld).Inc()
	}
}

// report writes an event on the object of a gang, or where it has none on its first
// pod, unless it equals the last one. It returns whether it did.
func (c *Controller) report(o observation, reason, text string) bool {
	if o.state.lastReported == reason+text {
		return false
	}
	o.state.lastReported = reason + text
	if object, _, ok := c.Objects.Get(o.key); ok {
		c.Recorder.Eventf(object.Reference(o.key), nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", text)
	} else if len(o.pods) > 0 {
		c.Recorder.Eventf(o.pods[0], nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", text)
	}
	return true
}

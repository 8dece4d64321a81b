package planner

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Shortfall is the proof that a partly placed gang cannot be completed now: fewer members have nodes than its minimum, and no others can
// have one.
type Shortfall struct {
	// Placed is how many members had nodes at the time of the proof.
	Placed int
	// Why has the numbers, such as: it needs 2 members with 2 cpu each, and the node that it may use has 1 cpu free of 4.
	Why string
}

// readyGrace is how long a node that is not Ready is expected to become so.
const readyGrace = time.Minute

// Shortfall returns the shortfall of a gang; ok is false unless its last attempt proved it, and no event since may have helped.
func (a *Attempts) Shortfall(group types.NamespacedName) (s Shortfall, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.parkedGangs[group]
	if m == nil || m.short == nil || m.cause != causeTime {
		return Shortfall{}, false
	}
	return *m.short, true
}

// NoVictims records that no eviction to which the gang under way is entitled would help it. Where there are candidates, it may have a placement with less
// room than it needs without preemption.
func (a *Attempts) NoVictims(group types.NamespacedName, candidates bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && a.current.group == group {
		a.current.noVictims, a.current.candidates = true, candidates
	}
}

// NeverPreempts is reported of who finds no room, has no others evicted, and outranks some.
const NeverPreempts = "its preemptionPolicy is Never: it preempts no pods of a lower priority"

// MayNotPreempt records of the gang under way that pods of a lower priority have places, and its preemptionPolicy is Never.
func (a *Attempts) MayNotPreempt(group types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && a.current.group == group {
		a.current.mayNotPreempt = true
	}
}

// VictimsUnknown records of the gang under way that the time was over before any eviction was found that would help it, and how long that took.
func (a *Attempts) VictimsUnknown(group types.NamespacedName, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && a.current.group == group {
		a.current.victimsUnknown = true
		a.current.searched += took
	}
}

// shortfall returns the shortfall of the gang; nil if it is not proven.
func (c *cycle) shortfall() *Shortfall {
	if !c.verdict.cannotComplete || !c.noVictims {
		return nil
	}
	return &Shortfall{Placed: int(c.verdict.bound), Why: c.verdict.reason.Finding.Message}
}

// cannotComplete reports whether a gang would have no placement even without the claims of others, without the pods that are being
// deleted, and with all nodes Ready that may soon be.
func (q *query) cannotComplete(ctx context.Context) bool {
	now := q.planner.clock.Now()
	soon := q.free.Emptied(func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }).MapNodes(func(n *corev1.Node) *corev1.Node {
		if now.Sub(placement.ReadyChangedAt(n)) > readyGrace {
			return n
		}
		return placement.Repaired(n)
	})
	found := placement.Place(ctx, soon, q.gang, q.opts)
	if found.Fits() {
		return false
	}
	proof := q.proof(ctx, soon, found)
	return proof.Impossible() && len(proof.Unmodelled) == 0
}

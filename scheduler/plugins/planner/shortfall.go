package planner

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Shortfall is that a gang stands in parts: fewer members have places than it needs, and it is proven that no others can have one now.
type Shortfall struct {
	// Placed is how many members had places when that was found.
	Placed int
	// Why has the numbers, such as: it needs 2 members with 2 cpu each, and the node that it may use has 1 cpu free of 4.
	Why string
}

// momentary is for how long a node is expected to become Ready that is new or has ceased to be.
const momentary = time.Minute

// Shortfall returns that of a gang; ok is false unless its last attempt proved it, and nothing has happened since that might help.
func (a *Attempts) Shortfall(group types.NamespacedName) (s Shortfall, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.memos[group]
	if m == nil || m.short == nil || m.cause != causeTime {
		return Shortfall{}, false
	}
	return *m.short, true
}

// NoVictims records of the gang that is being tried that no eviction to which it is entitled would help it.
func (a *Attempts) NoVictims(group types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil && a.now.group == group {
		a.now.noVictims = true
	}
}

// shortfall is that of the gang of an attempt; nil if it is not proven.
func (c *cycle) shortfall() *Shortfall {
	if !c.verdict.stranded || !c.noVictims {
		return nil
	}
	return &Shortfall{Placed: int(c.verdict.bound), Why: c.verdict.reason.Finding.Message}
}

// stranded reports whether a gang would have no placement though nothing were kept from it, all pods that leave had left, and
// all nodes were Ready that may be in a moment.
func (q *query) stranded(ctx context.Context) bool {
	now := q.planner.clock.Now()
	soon := q.free.Emptied(func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }).MapNodes(func(n *corev1.Node) *corev1.Node {
		if now.Sub(placement.ReadyChangedAt(n)) > momentary {
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

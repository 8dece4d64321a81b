package planner

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// sharedProofs are the verdicts on gangs that are proven to have no placement, for equal gangs that are tried while the cluster stays the same: of a
// thousand equal gangs that wait, one is searched. Only the engine's scheduling goroutine may use them.
type sharedProofs struct {
	state    placement.State // of the cluster for which they hold
	verdicts map[proofKey]*verdict
}

// proofKey is equal for gangs of which the same is proven in one state.
type proofKey [sha256.Size]byte

const (
	// maxSharedProofs is how many are kept: tenants choose how many kinds of gangs there are.
	maxSharedProofs = 64
	// maxSharedRoles is how many roles a gang may have whose proof is kept.
	maxSharedRoles = 16
)

// any reports whether there is a verdict in a state. While gangs are placed, one after the other, there is none.
func (s *sharedProofs) any(in placement.State) bool { return s.state == in && len(s.verdicts) > 0 }

// of returns the verdict on a gang that equals the given one; nil if there is none in that state.
func (s *sharedProofs) of(key proofKey, in placement.State) *verdict {
	if s.state != in || s.verdicts[key] == nil {
		return nil
	}
	v := s.verdicts[key].clone()
	v.ofEqual = true
	return v
}

// keep records the verdict on a gang for those that equal it. If there are too many, any one of the others goes.
func (s *sharedProofs) keep(key proofKey, in placement.State, v *verdict) {
	if s.state != in {
		*s = sharedProofs{state: in, verdicts: map[proofKey]*verdict{}}
	}
	for other := range s.verdicts {
		if len(s.verdicts) < maxSharedProofs {
			break
		}
		delete(s.verdicts, other)
	}
	s.verdicts[key] = v.clone()
}

// clone copies what an event may change of a proof, or the attempt that it is of.
func (v *verdict) clone() *verdict {
	c := *v
	c.lacks = maps.Clone(v.lacks)
	if v.wants != nil {
		wants := *v.wants
		c.wants = &wants
	}
	c.reason = v.reason.Clone()
	return &c
}

// sharesProof reports whether what is proven of the gang holds for its equals: no member has a node, nothing is kept for it, and it
// depends on the nodes, their pods, what is kept from it there and the labels of namespaces alone.
func (q *query) sharesProof() bool {
	return len(q.gang.Bound) == 0 && !q.members.refersToClaims && len(q.gang.Roles) <= maxSharedRoles &&
		len(q.planner.claims.Nodes(q.cycle.group)) == 0
}

// proofKey returns the key of the gang's proof: all that a search reads but the cluster.
func (q *query) proofKey() (key proofKey) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d %#v", q.plugin.handle.ProfileName(), q.cycle.group.Namespace, q.gang.MinMember, q.priority(), q.gang.Topology)
	for i, r := range q.gang.Roles {
		signature, err := q.members.signature(i)
		if err != nil {
			signature = string(r.Pod.UID) // what does not marshal is like no other
		}
		fmt.Fprintf(h, " %d of %d: %s", r.Count, len(signature), signature)
	}
	for _, c := range q.claims {
		fmt.Fprintf(h, " %s of %s on %q, %d from %d until %d %q: %q %q", c.Kind, c.For, c.Node, c.Priority, c.Start.UnixNano(), c.Until.UnixNano(), c.Progress, c.Pod.UID, c.Pod.Labels)
		if c.Pod.UID == "" { // what is left of several
			requests := request.Of(c.Pod)
			for _, name := range slices.Sorted(maps.Keys(requests)) {
				fmt.Fprintf(h, " %s: %d", name, request.Amount(name, requests[name]))
			}
		}
	}
	h.Sum(key[:0])
	return key
}

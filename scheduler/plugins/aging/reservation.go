// Package aging keeps large gangs from starving: a gang that has waited too
// long gets one reservation of the places that come free soonest, and smaller
// jobs go on running around it (EASY backfill). Nothing is ever evicted for a
// reservation.
package aging

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// Candidate is a gang that may get the reservation.
type Candidate struct {
	Group    types.NamespacedName
	Priority int32
	// Waits: it waits for places. Idle: it does not even want any, because members
	// are missing or held back, or it has not been tried, or it has what it needs.
	Waits, Idle bool
	// Since is when it began to wait; zero where its pods do not record it.
	Since time.Time
	// Open are the members without a place, by name.
	Open []*corev1.Pod
	// Members are the same as what is to be placed.
	Members placement.Gang

	entry order.Entry // its place in the order of those who wait
	rule  string      // by what it has that
}

// Reservation is the places that wait for one gang.
type Reservation struct {
	Group    types.NamespacedName
	Priority int32
	Since    time.Time
	// Start is when the last of the places is free at the latest; zero where
	// a pod on them runs without a limit.
	Start time.Time
	// Nodes are the reserved places by the name of their node.
	Nodes map[string]NodeReservation

	ready      time.Time // since when all the places are free; zero while a pod is to leave one
	considered time.Time // when others were last looked for
	rule       string    // by what it comes first, see order.Ranking.Rule
}

// claims are one for each reserved place. Their reason is without the node's name
// and without an age, so that all nodes count together and the message stays the same.
func (r Reservation) claims() (all []claims.Claim) {
	var members []*corev1.Pod
	for _, place := range r.Nodes {
		members = append(members, place.Members...)
	}
	who := claims.ThingOf(r.Group, r.Priority, members...)
	why := audience.Write(r.Group.Namespace, func(reader audience.Reader) string {
		why := fmt.Sprintf("reserved for %s, which has waited since %s", reader.Title(who), r.Since.UTC().Format(time.RFC3339))
		if r.rule == "" {
			return why
		}
		return why + " and comes first by " + r.rule
	})
	for _, node := range slices.Sorted(maps.Keys(r.Nodes)) {
		place := r.Nodes[node]
		for _, member := range place.Members {
			all = append(all, claims.Claim{
				For: r.Group, Who: who, Node: node, Pod: member, Why: why, Priority: r.Priority, Start: r.Start, Leaving: place.Leaving,
			})
		}
	}
	return all
}

// sooner reports whether a reservation comes true before another of the same gang: where neither knows when, the one for which fewer pods have to end.
func (r Reservation) sooner(other Reservation, cluster *placement.Cluster, now time.Time) bool {
	if r.Start.IsZero() && other.Start.IsZero() {
		return r.left(cluster) < other.left(cluster)
	}
	return expected(r.Start, now).Before(expected(other.Start, now))
}

// left is how many pods have to end yet.
func (r Reservation) left(cluster *placement.Cluster) (n int) {
	for node, place := range r.Nodes {
		for _, pod := range cluster.PodsOn(node) {
			if place.Leaving[pod.UID] {
				n++
			}
		}
	}
	return n
}

// equal reports whether two reservations keep the same.
func (r Reservation) equal(other Reservation) bool {
	return r.Group == other.Group && maps.EqualFunc(r.Nodes, other.Nodes, NodeReservation.equal)
}

// NodeReservation is the part of a reservation on one node.
type NodeReservation struct {
	// Members are the pods of the gang that are to run there.
	Members []*corev1.Pod
	// Leaving are the pods whose end the place waits for.
	Leaving map[types.UID]bool
}

func (p NodeReservation) equal(q NodeReservation) bool {
	return len(p.Members) == len(q.Members) && maps.Equal(p.Leaving, q.Leaving)
}

// Choose picks the places that come free soonest. The pods that have to end are
// as few and end as early as possible: those with a known end first, then those
// that have run longest. ok is false where the gang would not even fit with
// everybody gone, or where that could not be found out before ctx ends.
func Choose(ctx context.Context, p Projection, g Candidate, now time.Time) (r Reservation, ok bool) {
	cluster := p.Cluster
	running := p.leavers(g, now)
	p.sortByEnd(running, now)
	after := func(n int64) placement.Result {
		return placement.Place(ctx, cluster.Without(gang.UIDs(running[:n])...), g.Members, placement.Options{Budget: searchBudget})
	}
	all := int64(len(running))
	if !after(all).Fits() { // one search instead of a dozen: whoever requests too much would take the time of all others
		return Reservation{}, false
	}
	n := fewest(all, func(n int64) bool { return after(n).Fits() })
	leaving, result := necessary(ctx, running[:n], after(n), func(rest []*corev1.Pod) placement.Result {
		return placement.Place(ctx, cluster.Without(gang.UIDs(rest)...), g.Members, placement.Options{Budget: searchBudget})
	})
	if !result.Fits() {
		return Reservation{}, false // the time ran out in between
	}
	return p.reserve(g, result.Placement, leaving, now), true
}

// fewest is the smallest n for which fits is true, which it is for all. It
// doubles before it halves, for most gangs need few to end.
func fewest(all int64, fits func(int64) bool) int64 {
	hi := int64(1)
	for hi < all && !fits(hi) {
		hi *= 2
	}
	hi = min(hi, all)
	lo := hi/2 - 1 // does not fit, or is before the first
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; fits(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// necessary leaves out those whose end does not matter: they are on nodes that
// the gang does not use, or the gang fits alongside them. Those that end last are
// tried first, until ctx ends.
func necessary(ctx context.Context, leaving []*corev1.Pod, result placement.Result, without func([]*corev1.Pod) placement.Result) ([]*corev1.Pod, placement.Result) {
	used := map[string]bool{}
	for _, a := range result.Placement {
		used[a.Node] = true
	}
	kept := slices.DeleteFunc(slices.Clone(leaving), func(p *corev1.Pod) bool { return !used[p.Spec.NodeName] })
	best := without(kept)
	if !best.Fits() { // spread or affinity may count pods on other nodes
		kept, best = slices.Clone(leaving), result
	}
	for i := len(kept) - 1; i >= 0 && ctx.Err() == nil; i-- {
		fewer := slices.Delete(slices.Clone(kept), i, i+1)
		if r := without(fewer); r.Fits() {
			kept, best = fewer, r
		}
	}
	return kept, best
}

func (p Projection) reserve(g Candidate, assignments []placement.Assignment, leaving []*corev1.Pod, now time.Time) Reservation {
	r := Reservation{Group: g.Group, Priority: g.Priority, Since: g.Since, Start: now, Nodes: map[string]NodeReservation{}, considered: now, rule: g.rule}
	member := map[string]*corev1.Pod{}
	for _, role := range g.Members.Roles {
		member[role.Name] = role.Pod
	}
	for _, a := range assignments {
		place, known := r.Nodes[a.Node]
		if !known {
			place.Leaving = map[types.UID]bool{}
		}
		place.Members = append(place.Members, member[a.Role])
		r.Nodes[a.Node] = place
	}
	for _, pod := range leaving {
		if place, ok := r.Nodes[pod.Spec.NodeName]; ok {
			place.Leaving[pod.UID] = true
		}
		end := endOf(pod, p.Limits, now)
		if end.IsZero() || r.Start.IsZero() {
			r.Start = time.Time{}
		} else if end.After(r.Start) {
			r.Start = end
		}
	}
	return r
}

// Projection is the cluster as it is when promises have come true.
type Projection struct {
	Cluster *placement.Cluster
	// Limits are how long its pods run at most, where that is to be trusted.
	Limits order.Limits
	// Promised are the pods on it that are not there yet. It is not known when they
	// end.
	Promised map[types.UID]bool
}

// after returns the cluster when some have left and others have come.
func (p Projection) after(leave []types.UID, come ...*corev1.Pod) Projection {
	if len(leave) == 0 && len(come) == 0 {
		return p
	}
	next := Projection{Cluster: p.Cluster.Without(leave...).With(come...), Limits: p.Limits, Promised: map[types.UID]bool{}}
	maps.Copy(next.Promised, p.Promised)
	for _, pod := range come {
		next.Promised[pod.UID] = true
	}
	return next
}

// leavers are the pods whose end a gang may wait for: not its own members.
func (p Projection) leavers(g Candidate, now time.Time) (pods []*corev1.Pod) {
	for _, pod := range p.Cluster.Pods() {
		if !placement.DaemonSetPod(pod) && !p.Promised[pod.UID] && !hangs(pod, now) && !slices.Contains(g.Members.Bound, pod.UID) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// fulfilled is the cluster when a reservation has come true.
func (p Projection) fulfilled(r Reservation) Projection {
	var leave []types.UID
	var come []*corev1.Pod
	for node, place := range r.Nodes {
		for uid := range place.Leaving {
			leave = append(leave, uid)
		}
		for i, pod := range place.Members {
			uid := types.UID(fmt.Sprintf("%s/%s/%d", r.Group, node, i))
			come = append(come, placement.StandIn(pod, fmt.Sprintf("%s-%s-%d", pod.Name, node, i), uid, node))
		}
	}
	return p.after(leave, come...)
}

package aging

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

const (
	// searchBudget is how long the search for reservations may take. While it runs
	// nothing else is scheduled.
	searchBudget = 500 * time.Millisecond
	// reconcilePeriod is how often reservations are looked at again: whether their gang
	// still waits, whether the places are still good, whether another is due.
	reconcilePeriod = time.Second
	// share is how many times as long as it took it is rested after a reconciliation.
	share = 20
	// reconsider is how often places are looked for that come free sooner than those that are reserved.
	reconsider = time.Minute
	// observing is how often it is looked for pods that run longer than they promised.
	observing = 30 * time.Second
)

// Reconcile brings the reservations up to date. It is cheap when called often: it
// works once a period. Only the engine's scheduling goroutine may call
// it.
func (c *Controller) Reconcile(ctx context.Context) error {
	start := c.clock.Now()
	if start.Before(c.next) {
		return nil
	}
	err := c.reconcile(ctx, start)
	end := c.clock.Now()
	c.next = end.Add(max(reconcilePeriod, share*end.Sub(start)))
	return err
}

// reconcile gives each priority its reservation: to the gang that comes first
// of those for which there are places.
func (c *Controller) reconcile(ctx context.Context, now time.Time) error {
	due, before := c.due(now), c.Held()
	c.forget(now)
	if err := c.observe(now); err != nil {
		return err
	}
	if len(due) == 0 && len(before) == 0 {
		return nil
	}
	var open []*corev1.Pod
	for _, g := range due {
		open = append(open, g.Open...)
	}
	cluster, err := c.view.Cluster(open)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, searchBudget)
	defer cancel()
	projected, searched := Projection{Cluster: cluster, Limits: c.claims}, false
	var held []Reservation
	for _, g := range due {
		if n := len(held); n > 0 && held[n-1].Priority == g.Priority || c.backsOff(g.Group, now) {
			continue
		}
		if ctx.Err() != nil && !slices.ContainsFunc(before, func(r Reservation) bool { return r.Group == g.Group }) {
			continue // there is no time for a search
		}
		if g.Members.Roles, err = c.view.Roles(cluster, g.Open, g.Members.Topology); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot reserve places", "gang", claims.GangName(g.Group))
			c.failed.increase(g.Group, now, 0)
			continue // the others' places do not depend on it
		}
		r, ok := c.keep(ctx, projected, before, g, now)
		if ok && c.giveUp(r, now) {
			klog.FromContext(ctx).Info("Giving a reservation up: its places are free, and the engine does not place the gang there",
				"gang", claims.GangName(g.Group), "free since", r.ready)
			continue
		}
		if ok {
			r = c.sooner(ctx, projected, r, g, now)
		}
		if !ok && ctx.Err() == nil {
			from := c.clock.Now()
			r, ok = Choose(ctx, c.choosing(projected, g), g, now)
			if !ok && (!searched || ctx.Err() == nil) { // and it had the time
				// All for which there are no places together leave others half of the time.
				c.failed.increase(g.Group, now, 2*share*c.clock.Since(from)*time.Duration(len(c.failed.entries)+1))
			}
			searched = true
		}
		if ok {
			delete(c.failed.entries, g.Group)
			held = append(held, r)
			projected = projected.fulfilled(r)
		}
	}
	c.update(func(now []Reservation) []Reservation { return kept(held, before, now) }, types.NamespacedName{})
	return nil
}

// kept are the reservations that a reconciliation made of those before, without those that were ended meanwhile: they are not held now.
func kept(made, before, now []Reservation) []Reservation {
	return slices.DeleteFunc(slices.Clone(made), func(r Reservation) bool {
		isOf := func(other Reservation) bool { return other.Group == r.Group }
		return slices.ContainsFunc(before, isOf) && !slices.ContainsFunc(now, isOf)
	})
}

// due are the gangs that have waited too long, in the order in which they are served.
func (c *Controller) due(now time.Time) []Candidate {
	due := slices.DeleteFunc(c.waiting(), func(g Candidate) bool {
		after := c.patience(g)
		return after == 0 || now.Sub(g.Since) < after
	})
	for i := range due {
		expected := c.order.Expect(due[i].Open)
		due[i].rule = c.order.Rule(expected)
		due[i].entry = order.Entry{Name: due[i].Group.String(), Priority: due[i].Priority, Since: due[i].Since, Expected: expected}
	}
	slices.SortFunc(due, func(a, b Candidate) int { return c.order.Compare(a.entry, b.entry, now) })
	return due
}

// patience is how long a gang waits first, by its profile.
func (c *Controller) patience(g Candidate) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after[g.Open[0].Spec.SchedulerName]
}

// cleared is the cluster when the room is used that is being cleared for others
// whom the gang must not get in the way of.
func (c *Controller) cleared(p Projection, g Candidate) Projection {
	others := c.claims.Against(claims.Preemption, g.Group, g.Open[0])
	var leaving []types.UID
	for _, c := range others {
		leaving = slices.AppendSeq(leaving, maps.Keys(c.Leaving))
	}
	return p.after(leaving, claims.PlacedPods(others)...)
}

// choosing is the cluster for a new reservation. The places of dead members are
// not to be waited for.
func (c *Controller) choosing(p Projection, g Candidate) Projection {
	dead := c.claims.Against(claims.Replacement, g.Group, g.Open[0])
	return c.cleared(p, g).after(nil, claims.PlacedPods(dead)...)
}

// observe looks from time to time for pods that run longer than they promised, wherever they do: a promise counts for the order, whether or not
// a gang waits for a reservation.
func (c *Controller) observe(now time.Time) error {
	if now.Sub(c.observed) < observing {
		return nil
	}
	c.observed = now
	cluster, err := c.view.Cluster(nil)
	if err != nil {
		return err
	}
	for _, pod := range cluster.Pods() {
		c.claims.Observe(pod, late)
	}
	c.claims.Observed()
	return nil
}

// sooner returns the reservation of a gang, or from time to time one of other places if these come free sooner: fewer pods have to
// end, or all that have to do so earlier. Room comes free where no end was expected, and a reservation that only moves sooner comes true.
func (c *Controller) sooner(ctx context.Context, p Projection, r Reservation, g Candidate, now time.Time) Reservation {
	if !r.ready.IsZero() || now.Sub(r.considered) < reconsider {
		return r
	}
	r.considered = now
	other, ok := Choose(ctx, c.choosing(p, g), g, now)
	if !ok || !other.sooner(r, p.Cluster, now) {
		return r
	}
	other.considered = now
	return other
}

// keep returns the reservation that a gang has, if its places are still good: a
// reservation that moves about never comes true. A place on it that is held for a
// short time does no harm.
func (c *Controller) keep(ctx context.Context, p Projection, held []Reservation, g Candidate, now time.Time) (Reservation, bool) {
	i := slices.IndexFunc(held, func(r Reservation) bool { return r.Group == g.Group && r.Priority == g.Priority })
	if i < 0 {
		return Reservation{}, false
	}
	r := held[i]
	overdue := !r.Start.IsZero() && now.Sub(r.Start) > late
	var gone []types.UID
	free := true
	for name, place := range r.Nodes {
		for _, pod := range p.Cluster.PodsOn(name) {
			leaves := place.Leaving[pod.UID]
			free = free && !leaves
			if leaves && (overdue || hangs(pod, now)) {
				return Reservation{}, false
			}
			if end := endOf(pod, p.Limits, now); leaves || !r.Start.IsZero() && !end.IsZero() && !end.After(r.Start) {
				gone = append(gone, pod.UID)
			}
		}
	}
	on := func(n *corev1.Node) bool { _, reserved := r.Nodes[n.Name]; return reserved }
	cleared, options := c.cleared(p, g).Cluster, placement.Options{Budget: searchBudget, Node: on}
	found := placement.Place(ctx, cleared.Without(gone...), g.Members, options)
	fits := free && found.Fits()
	if fits && len(gone) > 0 { // pods that end before the start may be there meanwhile
		fits = placement.Place(ctx, cleared, g.Members, options).Fits()
	}
	switch {
	case !fits:
		r.ready = time.Time{}
	case r.ready.IsZero():
		r.ready = now
	}
	return r, !found.Impossible()
}

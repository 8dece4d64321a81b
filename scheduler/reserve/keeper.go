package reserve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/fit"
)

const (
	// searchBudget is how long the search for one reservation may take. While
	// it runs nothing else is scheduled.
	searchBudget = 500 * time.Millisecond
	// review is how often reservations are looked at again: whether their gang
	// still waits, whether the places are still good, whether another is due.
	review = time.Second
)

// Source is what a keeper is told of the cluster.
type Source interface {
	// Waiting lists the gangs that wait for places at this moment, without what
	// their members ask for.
	Waiting() []Gang
	// Wake has pods tried again at once; keys are NAMESPACE/NAME.
	Wake(pods map[string]*corev1.Pod)
}

// View is the engine's snapshot. Its methods are called from the engine's
// scheduling goroutine only.
type View interface {
	Cluster() (*fit.Cluster, error)
	// Roles groups pods that no rule of the engine tells apart.
	Roles(pods []*corev1.Pod) ([]fit.Role, error)
}

// Keeper holds the reservations. All profiles share one.
type Keeper struct {
	// Released is called, outside of any lock, after less is reserved than
	// before. It may be nil, and is set before the engine runs.
	Released func()
	// Reserved is called in the same way for a gang that has places now that it
	// had not, and tells its users.
	Reserved func(group types.NamespacedName)

	count counters
	view  View
	clock clock.WithTicker

	mu       sync.Mutex
	source   Source
	after    map[string]time.Duration // by profile: how long its gangs wait first
	reviewed time.Time
	held     []Reservation // by falling priority, one each
	turned   map[types.NamespacedName]map[string]*corev1.Pod
}

// NewKeeper returns a keeper without reservations.
func NewKeeper(view View, clock clock.WithTicker) *Keeper {
	return &Keeper{
		view: view, clock: clock, count: newCounters(),
		after: map[string]time.Duration{}, turned: map[types.NamespacedName]map[string]*corev1.Pod{},
	}
}

// Review brings the reservations up to date. It is cheap when called often: it
// works once a review interval. Only the engine's scheduling goroutine may call
// it.
func (k *Keeper) Review(ctx context.Context) error {
	now := k.clock.Now()
	if now.Sub(k.reviewed) < review {
		return nil
	}
	k.reviewed = now
	due, before := k.due(now), k.Held()
	if len(due) == 0 && len(before) == 0 {
		return nil
	}
	cluster, err := k.view.Cluster()
	if err != nil {
		return err
	}
	var held []Reservation
	for _, g := range due {
		if g.Members.Roles, err = k.view.Roles(g.Open); err != nil {
			return fmt.Errorf("reserve for gang %s: %w", DisplayName(g.Group), err)
		}
		r, ok := keep(ctx, cluster, before, g, now)
		if !ok {
			r, ok = Choose(ctx, cluster, g, now, searchBudget)
		}
		if ok {
			held = append(held, r)
			cluster = r.take(cluster)
		}
	}
	k.replace(held)
	return nil
}

// waiting lists the gangs that wait, none before there is a source.
func (k *Keeper) waiting() []Gang {
	k.mu.Lock()
	source := k.source
	k.mu.Unlock()
	if source == nil {
		return nil
	}
	return source.Waiting()
}

// due are the gangs that have waited too long: of each priority the one that
// has waited longest.
func (k *Keeper) due(now time.Time) []Gang {
	waiting := slices.DeleteFunc(k.waiting(), func(g Gang) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		after := k.after[g.Open[0].Spec.SchedulerName]
		return after == 0 || now.Sub(g.Since) < after
	})
	slices.SortFunc(waiting, func(a, b Gang) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), strings.Compare(a.Group.String(), b.Group.String()))
	})
	return slices.CompactFunc(waiting, func(a, b Gang) bool { return a.Priority == b.Priority })
}

// keep returns the reservation that a gang has, if its places are still good: a
// reservation that moves about never comes true.
func keep(ctx context.Context, cluster *fit.Cluster, held []Reservation, g Gang, now time.Time) (Reservation, bool) {
	i := slices.IndexFunc(held, func(r Reservation) bool { return r.Group == g.Group && r.Priority == g.Priority })
	if i < 0 {
		return Reservation{}, false
	}
	r := held[i]
	var gone []types.UID
	for name, place := range r.Nodes {
		for _, pod := range cluster.PodsOn(name) {
			if end := EndOf(pod, now); place.Leaving[pod.UID] || !r.Start.IsZero() && !end.IsZero() && !end.After(r.Start) {
				gone = append(gone, pod.UID)
			}
		}
	}
	on := func(n *corev1.Node) bool { _, reserved := r.Nodes[n.Name]; return reserved }
	return r, fit.Place(ctx, cluster.Without(gone...), g.Members, fit.Options{Budget: searchBudget, Node: on}).Fits()
}

// take returns the cluster as it is when the reservation has come true.
func (r *Reservation) take(cluster *fit.Cluster) *fit.Cluster {
	var gone []types.UID
	var members []*corev1.Pod
	for node, place := range r.Nodes {
		for uid := range place.Leaving {
			gone = append(gone, uid)
		}
		for i, pod := range place.Members {
			member := pod.DeepCopy()
			member.UID = types.UID(fmt.Sprintf("%s/%s/%d", r.Group, node, i))
			member.Spec.NodeName = node
			members = append(members, member)
		}
	}
	return cluster.Without(gone...).With(members...)
}

// Run ends the reservations of gangs that do not wait any more, until ctx does.
// The engine tries nothing while all that is left was turned away, so it cannot
// be left to Review.
func (k *Keeper) Run(ctx context.Context) {
	ticker := k.clock.NewTicker(review)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			k.sweep()
		}
	}
}

func (k *Keeper) sweep() {
	held := k.Held()
	if len(held) == 0 {
		return
	}
	waiting := k.waiting()
	rest := slices.DeleteFunc(slices.Clone(held), func(r Reservation) bool {
		return !slices.ContainsFunc(waiting, func(g Gang) bool { return g.Group == r.Group })
	})
	if len(rest) < len(held) {
		k.replace(rest)
	}
}

// replace sets the reservations, and wakes whom those that ended or moved
// turned away.
func (k *Keeper) replace(held []Reservation) {
	k.mu.Lock()
	away := map[string]*corev1.Pod{}
	less := false
	for _, old := range k.held {
		if !slices.ContainsFunc(held, old.equal) {
			less = true
			maps.Copy(away, k.turned[old.Group])
			delete(k.turned, old.Group)
		}
	}
	var gained []types.NamespacedName
	for _, r := range held {
		if !slices.ContainsFunc(k.held, r.equal) {
			gained = append(gained, r.Group)
		}
	}
	k.held = held
	k.count.reservations.Set(float64(len(held)))
	source := k.source
	k.mu.Unlock()
	for _, group := range gained {
		if k.Reserved != nil {
			k.Reserved(group)
		}
	}
	if !less {
		return
	}
	if k.Released != nil {
		k.Released()
	}
	if len(away) > 0 && source != nil {
		source.Wake(away)
	}
}

// Held returns the reservations, by falling priority.
func (k *Keeper) Held() []Reservation {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.held)
}

// turnAway remembers a pod that a reservation keeps out.
func (k *Keeper) turnAway(group types.NamespacedName, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.turned[group] == nil {
		k.turned[group] = map[string]*corev1.Pod{}
	}
	k.turned[group][pod.Namespace+"/"+pod.Name] = pod
}

package aging

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Source is what a keeper is told of the cluster.
type Source interface {
	// Gangs lists all gangs, without what their members ask for.
	Gangs() []Gang
	// Partly tells whether a gang has places at this moment, and fewer than it
	// needs.
	Partly(group types.NamespacedName) bool
	// Pending tells whether a pod still waits for a node.
	Pending(pod *corev1.Pod) bool
	// Wake has pods tried again at once; keys are NAMESPACE/NAME.
	Wake(pods map[string]*corev1.Pod)
}

// View is the engine's snapshot. Its methods are called from the engine's
// scheduling goroutine only.
type View interface {
	// Cluster is with what the volumes and claims of pods refer to that are to be
	// placed.
	Cluster(pods []*corev1.Pod) (*placement.Cluster, error)
	// Roles groups pods that no rule of the engine tells apart.
	Roles(pods []*corev1.Pod) ([]placement.Role, error)
}

// Keeper holds the reservations. All profiles share one.
type Keeper struct {
	// Released is called, outside of any lock, after less is reserved than
	// before. It may be nil, and is set before the engine runs.
	Released func()
	// Reserved is called in the same way for a gang that has places now that it
	// had not, and tells its users.
	Reserved func(group types.NamespacedName)
	// Promises are heeded; they may be nil.
	Promises Promises

	count counters
	open  func(fwk.Handle) View
	clock clock.WithTicker
	// Set when a profile is made, before the engine runs.
	view  View
	after map[string]time.Duration // by profile: how long its gangs wait first

	// Touched by the engine's scheduling goroutine only.
	next   time.Time                         // when reservations are looked at again
	failed map[types.NamespacedName]*setback // gangs for which there were no places

	mu     sync.Mutex
	source Source
	ages   map[types.NamespacedName]age
	held   []Reservation // by falling priority, one each
	turned map[types.NamespacedName]map[string]*corev1.Pod
}

// NewKeeper returns a keeper without reservations. It opens its view with the
// handle of a profile that has the plugin.
func NewKeeper(open func(fwk.Handle) View, clock clock.WithTicker) *Keeper {
	return &Keeper{
		open: open, clock: clock, count: newCounters(), failed: map[types.NamespacedName]*setback{},
		after: map[string]time.Duration{}, ages: map[types.NamespacedName]age{}, turned: map[types.NamespacedName]map[string]*corev1.Pod{},
	}
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
	k.forget()
}

// forget drops those who were turned away and have a place now, or are gone.
func (k *Keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, away := range k.turned {
		maps.DeleteFunc(away, func(_ string, pod *corev1.Pod) bool { return k.source != nil && !k.source.Pending(pod) })
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

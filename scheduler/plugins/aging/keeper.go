package aging

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// Source lists all gangs, without the roles of their members.
type Source interface {
	Gangs() []Candidate
}

// View is the engine's snapshot. Its methods are called from the engine's
// scheduling goroutine only.
type View interface {
	// Cluster is with what the volumes and claims of pods refer to that are to be
	// placed.
	Cluster(pods []*corev1.Pod) (*placement.Cluster, error)
	// Roles groups pods that no rule of the engine distinguishes.
	Roles(pods []*corev1.Pod) ([]placement.Role, error)
}

// ParkedGangs are gangs that the planner does not try until something helps them.
type ParkedGangs interface {
	// Wake has a gang tried again at once, so that its users read what it got.
	Wake(group types.NamespacedName)
}

// Keeper makes the reservations. All profiles share one.
type Keeper struct {
	source Source
	view   View
	claims *claims.Ledger
	parked ParkedGangs
	order  *order.Ranking
	clock  clock.WithTicker
	count  *metrics.Gauge

	// Touched by the engine's scheduling goroutine only.
	next     time.Time                    // when reservations are looked at again
	observed time.Time                    // when promises were looked at
	failed   memory[types.NamespacedName] // gangs for which there were no places

	mu    sync.Mutex
	after map[string]time.Duration // by profile: how long its gangs wait first
	ages  map[types.NamespacedName]age
	held  []Reservation // by falling priority, one each
	// notUsed are gangs that did not use their places, and wasteful the namespaces of such gangs.
	notUsed  memory[types.NamespacedName]
	wasteful memory[string]
}

// NewKeeper returns a keeper without reservations. Those come first who do in the order.
func NewKeeper(source Source, view View, ledger *claims.Ledger, parked ParkedGangs, ranking *order.Ranking, clock clock.WithTicker) *Keeper {
	return &Keeper{
		source: source, view: view, claims: ledger, parked: parked, order: ranking, clock: clock,
		failed:  newMemory[types.NamespacedName](firstSetback, maxSetback),
		notUsed: newMemory[types.NamespacedName](unused, maxUnused), wasteful: newMemory[string](unused, maxUnused),
		after: map[string]time.Duration{}, ages: map[types.NamespacedName]age{},
		count: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "reservations", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that have waited long and for which places are reserved.",
		}),
	}
}

// Register registers the keeper's metrics.
func (k *Keeper) Register(register func(...metrics.Registerable)) { register(k.count) }

// Run ends the reservations of gangs that do not wait any more, until ctx does.
// The engine tries nothing while all pods that are left were refused, so it cannot
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
			k.claims.Prune()
		}
	}
}

func (k *Keeper) sweep() {
	if len(k.Held()) == 0 {
		return
	}
	waiting := k.waiting()
	k.end(func(r Reservation) bool {
		return !slices.ContainsFunc(waiting, func(g Candidate) bool { return g.Group == r.Group })
	}, types.NamespacedName{})
}

// placed ends the reservation of a gang of which a member is placed. All members
// are decided on before any other pod is.
func (k *Keeper) placed(group types.NamespacedName) {
	k.end(func(r Reservation) bool { return r.Group == group }, group)
}

// end ends some of the reservations; used is the gang that is placed, empty for none.
func (k *Keeper) end(which func(Reservation) bool, used types.NamespacedName) {
	if slices.ContainsFunc(k.Held(), which) {
		k.update(func(held []Reservation) []Reservation { return slices.DeleteFunc(held, which) }, used)
	}
}

// update makes other reservations of those that are held now, and claims their places: the engine and Run do so at the same time. Of the gang that
// is placed the places were used; it is empty for none.
func (k *Keeper) update(change func(held []Reservation) []Reservation, used types.NamespacedName) {
	k.mu.Lock()
	held := change(slices.Clone(k.held))
	var all []claims.Claim
	for _, r := range held {
		all = append(all, r.claims()...)
	}
	var gained []types.NamespacedName
	for _, r := range held {
		if !slices.ContainsFunc(k.held, r.equal) {
			gained = append(gained, r.Group)
		}
	}
	for _, r := range k.held {
		if r.Group != used {
			k.chargeEnded(r, held)
		}
	}
	k.held = held
	k.count.Set(float64(len(held)))
	k.claims.Replace(claims.Reservation, all)
	k.mu.Unlock()
	for _, group := range gained {
		k.parked.Wake(group)
	}
	k.claims.Wake()
}

// Held returns the reservations, by falling priority.
func (k *Keeper) Held() []Reservation {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.held)
}

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

	"github.com/gangctl/gangctl/pkg/gang"
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
	// Roles groups pods that no rule of the engine distinguishes, some of those with
	// which Cluster was last called, on what it returned.
	Roles(cluster *placement.Cluster, pods []*corev1.Pod, topology gang.Topology) ([]placement.Role, error)
}

// ParkedGangs are gangs that the planner does not try until something helps them.
type ParkedGangs interface {
	// Wake has a gang tried again at once, so that its users read what it got.
	Wake(group types.NamespacedName)
}

// Controller makes the reservations. All profiles share one.
type Controller struct {
	source Source
	view   View
	claims *claims.Ledger
	parked ParkedGangs
	order  *order.Ranking
	clock  clock.WithTicker
	count  *metrics.Gauge

	// Touched by the engine's scheduling goroutine only.
	next     time.Time                      // when reservations are looked at again
	observed time.Time                      // when promises were looked at
	failed   backoffs[types.NamespacedName] // gangs for which there were no places

	mu    sync.Mutex
	after map[string]time.Duration // by profile: how long its gangs wait first
	ages  map[types.NamespacedName]age
	held  []Reservation // by falling priority, one each
	// notUsed are gangs that did not use their places, and wasteful the namespaces of such gangs.
	notUsed  backoffs[types.NamespacedName]
	wasteful backoffs[string]
}

// NewController returns a controller without reservations. Those come first who do in the order.
func NewController(source Source, view View, ledger *claims.Ledger, parked ParkedGangs, ranking *order.Ranking, clock clock.WithTicker) *Controller {
	return &Controller{
		source: source, view: view, claims: ledger, parked: parked, order: ranking, clock: clock,
		failed:  newBackoffs[types.NamespacedName](initialBackoff, maxBackoff),
		notUsed: newBackoffs[types.NamespacedName](unused, maxUnused), wasteful: newBackoffs[string](unused, maxUnused),
		after: map[string]time.Duration{}, ages: map[types.NamespacedName]age{},
		count: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "reservations", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that have waited long and for which places are reserved.",
		}),
	}
}

// Register registers the controller's metrics.
func (c *Controller) Register(register func(...metrics.Registerable)) { register(c.count) }

// Run ends the reservations of gangs that do not wait any more, until ctx does.
// The engine tries nothing while all pods that are left were refused, so it cannot
// be left to Reconcile.
func (c *Controller) Run(ctx context.Context) {
	ticker := c.clock.NewTicker(reconcilePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.sweep()
			c.claims.Prune()
		}
	}
}

func (c *Controller) sweep() {
	if len(c.Held()) == 0 {
		return
	}
	waiting := c.waiting()
	c.end(func(r Reservation) bool {
		return !slices.ContainsFunc(waiting, func(g Candidate) bool { return g.Group == r.Group })
	}, types.NamespacedName{})
}

// placed ends the reservation of a gang of which a member is placed. All members
// are decided on before any other pod is.
func (c *Controller) placed(group types.NamespacedName) {
	c.end(func(r Reservation) bool { return r.Group == group }, group)
}

// end ends some of the reservations; used is the gang that is placed, empty for none.
func (c *Controller) end(which func(Reservation) bool, used types.NamespacedName) {
	if slices.ContainsFunc(c.Held(), which) {
		c.update(func(held []Reservation) []Reservation { return slices.DeleteFunc(held, which) }, used)
	}
}

// update makes other reservations of those that are held now, and claims their places: the engine and Run do so at the same time. Of the gang that
// is placed the places were used; it is empty for none.
func (c *Controller) update(change func(held []Reservation) []Reservation, used types.NamespacedName) {
	c.mu.Lock()
	held := change(slices.Clone(c.held))
	var all []claims.Claim
	for _, r := range held {
		all = append(all, r.claims()...)
	}
	var gained []types.NamespacedName
	for _, r := range held {
		if !slices.ContainsFunc(c.held, r.equal) {
			gained = append(gained, r.Group)
		}
	}
	for _, r := range c.held {
		if r.Group != used {
			c.chargeEnded(r, held)
		}
	}
	c.held = held
	c.count.Set(float64(len(held)))
	c.claims.Replace(claims.Reservation, all)
	c.mu.Unlock()
	for _, group := range gained {
		c.parked.Wake(group)
	}
	c.claims.Wake()
}

// Held returns the reservations, by falling priority.
func (c *Controller) Held() []Reservation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.held)
}

// Package preemption frees nodes for gangs and pods that outrank others: it evicts
// single pods, members that their gang can do without, or gangs as a whole, and
// only if whoever it is for then fits.
//
// Who is to go is decided in the engine's scheduling cycle ([Choose]), on the
// engine's own snapshot, and tried on the engine itself. The freed nodes are reserved until
// they are used, as claims. The API is written to alongside, in [Preemptor.Run].
package preemption

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// reservation is the room on nodes that is being freed for a gang or a pod. Until that is placed, no
// other of the same or a lower priority may use it.
type reservation struct {
	key      types.NamespacedName
	priority int32
	pods     []*corev1.Pod             // for whom it is; not changed
	who      audience.Thing            // the preemptor, to readers: the event on every victim has it
	singly   bool                      // they are placed one by one, and not all at once
	assigned map[string][]*corev1.Pod  // by node, those that have no place yet; the preemptor's lock must be held
	victims  map[types.UID]*corev1.Pod // that still are there
	gone     map[types.UID]string      // victims that have gone, and from which node; a snapshot from before has them
	jobs     map[gang.Identity]bool    // that are suspended for it
	units    []Unit                    // to be evicted
	text     string                    // reported for it
	timeout  time.Duration             // for victims to go after their grace
	since    time.Time                 // it was decided on
	cleared  time.Time                 // all victims were gone; zero before
	begun    bool                      // its victims are being evicted
	insists  bool                      // what suspended jobs leave is deleted
}

// newReservation returns that of a preemptor which gets these nodes.
func newReservation(c cause, assigned map[string][]*corev1.Pod, now time.Time) *reservation {
	r := &reservation{
		key: c.key, priority: c.priority, pods: c.pods, singly: c.more, assigned: assigned,
		victims: map[types.UID]*corev1.Pod{}, gone: map[types.UID]string{}, jobs: map[gang.Identity]bool{}, since: now,
	}
	r.pods = r.waiting() // others of a gang may wait for good
	r.who = claims.ThingOf(r.key, r.priority, r.pods...)
	return r
}

// claims are one for each of the pods that come.
func (r *reservation) claims() (all []claims.Claim) {
	leaving := map[types.UID]bool{}
	for uid := range r.victims {
		leaving[uid] = true
	}
	why := audience.Write(r.key.Namespace, func(reader audience.Reader) string { return "being cleared for " + reader.Title(r.who) })
	for _, node := range slices.Sorted(maps.Keys(r.assigned)) {
		for _, pod := range r.assigned[node] {
			all = append(all, claims.Claim{
				For: r.key, Who: r.who, Node: node, Pod: pod, Why: why, Priority: r.priority,
				Leaving: leaving, Progress: r.text, Suspended: r.jobs,
			})
		}
	}
	return all
}

const (
	// sweepPeriod is how often reservations are looked at whose end brings no event.
	sweepPeriod = time.Second
	// useWithin is how long a reservation is kept after the last victim has left.
	useWithin = 30 * time.Second
	// firstBackoff is how long a preemptor waits that was not placed on the nodes
	// freed for it, before others have to go; it doubles up to maxBackoff.
	firstBackoff = 10 * time.Second
	maxBackoff   = 5 * time.Minute
	// giveBackWithin is how long the controller of a suspended job has to delete its pods. Those that it leaves are deleted, for which a job
	// that is suspended does not fail: they are not the controller's, whatever their owner is by what a user wrote.
	giveBackWithin = time.Minute
	// sparedFor is how long a victim that could not be evicted is left alone.
	sparedFor = 5 * time.Minute
)

// Engine is the part of kube-scheduler that the preemptor uses; *engine.Handle implements it.
type Engine interface {
	// Framework is that of any profile.
	Framework() fwk.Handle
	// Activate moves pods to the front of the queue; the keys are NAMESPACE/NAME.
	Activate(pods map[string]*corev1.Pod)
	// Pod returns a pod as it is now; nil if it is gone.
	Pod(pod *corev1.Pod) *corev1.Pod
}

// Requests prepares placement requests; *planner.Planner does.
type Requests interface {
	Request(handle fwk.Handle, group types.NamespacedName, pods []*corev1.Pod, of placement.Gang) (planner.PlacementRequest, error)
	// Postponed is why pods of one gang, or one pod on its own, are not to be tried now; empty if they may be.
	Postponed(group types.NamespacedName, pods []*corev1.Pod) string
	// WaitsForVolumes reports whether the gang that is being tried has a place as soon as its volumes are made.
	WaitsForVolumes(group types.NamespacedName) bool
}

// ParkedGangs are gangs that the planner does not try until something helps them.
type ParkedGangs interface {
	// Wake has a gang tried again at once.
	Wake(group types.NamespacedName)
	// NoVictims records of the gang that is being tried that no eviction would help it, and whether there are pods that it may have evicted.
	NoVictims(group types.NamespacedName, candidates bool)
	// MayNotPreempt records of the gang that is being tried that its preemptionPolicy alone keeps pods of a lower priority from being evicted for it.
	MayNotPreempt(group types.NamespacedName)
	// VictimsUnknown records of the gang that is being tried that the time was over before any eviction was found that would help it,
	// and how long that took.
	VictimsUnknown(group types.NamespacedName, took time.Duration)
}

// ForeignGangs knows the gangs of other schedulers.
type ForeignGangs interface {
	// GangOfForeign names the gang that a pod of another scheduler belongs to.
	GangOfForeign(pod *corev1.Pod) (name string, ok bool)
}

// Preemptor frees nodes. All profiles share one.
type Preemptor struct {
	engine  Engine
	planner Requests
	claims  *claims.Ledger
	parked  ParkedGangs
	jobs    *suspend.Suspender
	foreign ForeignGangs
	clock   clock.WithTicker
	count   counters
	guard   *engine.Guard
	orders  chan *reservation
	// nominatedWithin is the constant of that name; the clock is that of the machine, and tests wait longer.
	nominatedWithin time.Duration

	mu           sync.Mutex
	reservations map[types.NamespacedName]*reservation
	// failed are preemptors that were not placed on the nodes freed for them.
	failed map[types.NamespacedName]*backoff
	// awaiting are preemptors without a reservation that wait for pods to leave; withdrawn is how often victims stayed that were to leave.
	awaiting  map[types.NamespacedName][]*corev1.Pod
	withdrawn int
	// nominees are the members that this scheduler has nominated, or one before it, and for which node.
	nominees map[types.UID]nominee
	// resting are namespaces for which the engine is not tried for victims.
	resting map[string]*rest
	// spared are jobs that could not be suspended and pods that could not be deleted, and until when they are left alone.
	spared map[gang.Identity]time.Time
}

type backoff struct {
	times int
	until time.Time
	pods  []*corev1.Pod
}

// ordersAtOnce is how many preemptions may wait for the API.
const ordersAtOnce = 1000

// New returns a preemptor. It must be run. Jobs suspends the jobs of victims. Panics may be nil.
func New(handle Engine, planner Requests, ledger *claims.Ledger, parked ParkedGangs, jobs *suspend.Suspender, foreign ForeignGangs,
	panics *engine.Panics, c clock.WithTicker,
) *Preemptor {
	return &Preemptor{
		engine: handle, planner: planner, claims: ledger, parked: parked, jobs: jobs, foreign: foreign,
		clock: c, count: newCounters(), guard: panics.Guard("preemption"), orders: make(chan *reservation, ordersAtOnce), nominatedWithin: nominatedWithin,
		reservations: map[types.NamespacedName]*reservation{}, failed: map[types.NamespacedName]*backoff{}, spared: map[gang.Identity]time.Time{},
		resting: map[string]*rest{}, nominees: map[types.UID]nominee{}, awaiting: map[types.NamespacedName][]*corev1.Pod{},
	}
}

// Run evicts until ctx ends.
func (p *Preemptor) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	ticker := p.clock.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-p.orders:
			work.Go(func() { p.attempt(ctx, r) })
		case <-ticker.C():
			p.sweep(klog.FromContext(ctx))
			p.clearNominations(ctx)
		}
	}
}

// attempt evicts the victims of a reservation. One over whose objects that panics ends: nodes are not kept for it, and others are preempted for.
func (p *Preemptor) attempt(ctx context.Context, r *reservation) {
	logger := klog.FromContext(ctx)
	if !p.guard.Each(logger, func() string { return claims.Describe(r.key) }, func() { p.execute(ctx, r) }) {
		p.end(r, endFailed)
	}
}

// retry has a preemptor tried again at once.
func (p *Preemptor) retry(key types.NamespacedName, pods []*corev1.Pod) {
	p.parked.Wake(key)
	if claims.IsSingle(key) {
		p.engine.Activate(named(pods))
	}
}

func named(pods []*corev1.Pod) map[string]*corev1.Pod {
	all := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		all[pod.Namespace+"/"+pod.Name] = pod
	}
	return all
}

// Package belowmin handles gangs of which fewer members have nodes than the gang
// requires, for too long: members that wait for others that do not come hold their
// nodes for nothing.
//
// There are two such cases. A gang that ran and lost members is treated by its
// policy ([Policy]). One that was never whole, because a member that had a node
// could not be bound, is no gang at all; what there is of it is rolled back, unless
// its policy is to be ignored: after a grace, or at once where it is proven that the
// others can have no places now.
package belowmin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

const (
	// debounce is how long changes of a gang are gathered before it is reconciled.
	debounce = 200 * time.Millisecond
	// maxGrace bounds the grace of a gang that was evicted again and again.
	maxGrace = time.Hour
	// recentGraces is how old the first binding of a gang that was never whole may be
	// when it is first seen below its minimum, in multiples of its grace.
	recentGraces = 10
	// pollInterval is how often a job that was suspended is read.
	pollInterval = time.Second
)

// Reasons of the events on gangs and jobs.
const (
	ReasonBelowMin   = "GangBelowMinimum"    // and is left alone
	ReasonRolledBack = "GangRolledBack"      // it was never whole
	ReasonEvicted    = "GangEvicted"         // it was whole once
	ReasonResumed    = suspend.ReasonResumed // its job may create pods again
	ReasonFailed     = "GangPolicyFailed"    // its members cannot be evicted
)

// Actions on a gang below its minimum: the values of the label action.
const (
	actionRolledBack = "rolled-back"
	actionEvicted    = "evicted"
	actionHeld       = "held"
	actionRefused    = "refused"
)

// Gangs is the cache of gangs; *gangcache.Cache implements it.
type Gangs interface {
	// Pods lists the pods of a gang, those that have ended included.
	Pods(key gang.Key) []*corev1.Pod
	// Completed returns the number of its members that have succeeded.
	Completed(key gang.Key) int32
	// Required returns the number of members that must have a node now; ok is false
	// for a gang that is not declared.
	Required(key gang.Key) (count, priority int32, ok bool)
}

// Objects reads the API objects of gangs. The object itself is nil where only
// its identity is known.
type Objects interface {
	Get(key gang.Key) (object gangcache.Object, u *unstructured.Unstructured, ok bool)
}

// Claims records what gangs have; *claims.Ledger implements it.
type Claims interface {
	// Whole records that these members of a gang have places, and are as many as it requires.
	Whole(group types.NamespacedName, members []*corev1.Pod)
	// Below records that fewer members have places than it requires.
	Below(group types.NamespacedName)
	// Unplaced records that no member of a gang has a place.
	Unplaced(group types.NamespacedName)
}

// Config has the dependencies of a controller.
type Config struct {
	Client  kubernetes.Interface
	Gangs   Gangs
	Objects Objects
	Claims  Claims
	// Jobs suspends and resumes jobs.
	Jobs *suspend.Suspender
	// Synced reports whether every pod and object is known.
	Synced   func() bool
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	// Panics counts the gangs over which the controller panics; nil where none counts.
	Panics *engine.Panics
	// NodeExists reports whether a node exists, as far as is known.
	NodeExists func(name string) bool
	// Shortfall returns whether it is proven that a gang cannot be completed now, and
	// why; it may be nil.
	Shortfall func(group types.NamespacedName) (s planner.Shortfall, ok bool)
	// Freed is called when no member of a gang has a node any more and the gang may be
	// tried as a whole; it may be nil.
	Freed func(group types.NamespacedName)
}

// Controller applies the policy to gangs below their minimum.
type Controller struct {
	Config

	guard   *engine.Guard
	queue   *engine.RetryQueue[gang.Key]
	actions *metrics.CounterVec

	mu       sync.Mutex
	profiles map[string]Args
	evicting map[types.NamespacedName]bool // gangs that are being evicted
	inFlight map[types.NamespacedName]*inFlight

	// The one worker's.
	gangs map[gang.Key]*state
}

// New returns a controller, which does nothing before [Controller.Run].
func New(config Config) *Controller {
	return &Controller{
		Config: config, guard: config.Panics.Guard("belowmin"), queue: engine.NewRetryQueue(func(key gang.Key) string { return key.Namespace }),
		actions: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "below_min_actions_total", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that stayed below their minimum, by what was done: rolled-back (never whole), evicted, held, or refused (could not be evicted).",
		}, []string{"action"}),
		profiles: map[string]Args{}, evicting: map[types.NamespacedName]bool{}, inFlight: map[types.NamespacedName]*inFlight{},
		gangs: map[gang.Key]*state{},
	}
}

// Register adds the controller's metrics to a registry.
func (c *Controller) Register(register func(...metrics.Registerable)) { register(c.actions) }

// Touch enqueues a gang that may have changed.
func (c *Controller) Touch(key gang.Key) { c.queue.Touch(key, debounce) }

// Run works until ctx ends. Only the replica that schedules may run it.
func (c *Controller) Run(ctx context.Context) {
	if err := c.Jobs.Recall(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot determine which jobs to resume; retrying")
		c.queue.AddRateLimited(gang.Key{})
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		<-ctx.Done()
		c.queue.ShutDown()
	})
	work.Go(func() { c.pollJobs(ctx) })
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		_, err := c.guard.Do(klog.FromContext(ctx), key.String(), func() string { return c.version(key) }, func() error { return c.reconcile(ctx, key) })
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot deal with a gang below its minimum; retrying", "gang", key.String())
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// version is that of what a gang is reconciled by, for the guard. The suspended jobs, which the zero key is for, are not skipped for good: they are looked at again
// after a while.
func (c *Controller) version(key gang.Key) string {
	if key == (gang.Key{}) {
		return c.Clock.Now().Truncate(time.Minute).String()
	}
	return engine.VersionOf(c.Gangs.Pods(key)...)
}

// pollJobs enqueues the suspended jobs, as the zero key. There may be no event when
// the last pod of a job is gone, if a former scheduler suspended the job.
func (c *Controller) pollJobs(ctx context.Context) {
	ticker := c.Clock.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.queue.Add(gang.Key{})
		}
	}
}

func (c *Controller) reconcile(ctx context.Context, key gang.Key) error {
	if key == (gang.Key{}) {
		return errors.Join(c.Jobs.Recall(ctx), c.Jobs.Resume(ctx))
	}
	if !c.Synced() {
		c.queue.AddAfter(key, pollInterval)
		return nil
	}
	pods := c.Gangs.Pods(key)
	required, _, declared := c.Gangs.Required(key)
	s := c.gangs[key]
	if s == nil {
		s = &state{}
		c.gangs[key] = s
	}
	s.resetForNewOwners(pods)
	m := membersOf(pods, required, c.NodeExists)
	a, enabled := c.args(pods)
	o := observation{key: key, pods: pods, members: m, state: s, args: a, boundToDeletedNodes: s.boundToDeletedNodes(m, c.Clock.Now(), a.StartGrace.Duration)}
	switch {
	case len(m.placed) == 0:
		c.free(key, s)
		if len(pods) == 0 {
			c.retain(key, s)
		}
		return nil
	case s.evicting: // to the end, whatever its state is now: half of its members are gone
	case !declared:
		// Its object is being replaced, or has no minimum. What was known of the gang is true when it is declared again.
		s.below, s.recorded = time.Time{}, false
		return nil
	case len(m.placed) >= m.required && !o.boundToDeletedNodes:
		c.seenWhole(key, s, m)
		return nil
	case c.Gangs.Completed(key) > 0:
		// It is about to end. Members that have not completed may still work.
		s.below = time.Time{}
		c.dropInFlight(key.VirtualGroup())
		return nil
	}
	c.Claims.Below(key.VirtualGroup())
	s.recorded = false
	if !enabled {
		return nil
	}
	return c.reconcileBelowMin(ctx, o)
}

// seenWhole records that a gang is whole. One that has become so is looked at again.
func (c *Controller) seenWhole(key gang.Key, s *state, m members) {
	since := s.since
	if since.IsZero() {
		since = c.Clock.Now()
		c.queue.AddAfter(key, pollInterval)
	}
	placed := gang.UIDs(m.placed)
	recorded := s.recorded && slices.Equal(placed, s.whole)
	if !recorded && len(m.lost) == 0 { // what is bound to a node that does not exist has no place
		c.Claims.Whole(key.VirtualGroup(), m.placed)
		recorded = true
	}
	*s = state{whole: placed, recorded: recorded, since: since, starters: s.start(m)}
	c.dropInFlight(key.VirtualGroup())
}

// free records that no member of a gang has a node.
func (c *Controller) free(key gang.Key, s *state) {
	group := key.VirtualGroup()
	c.Claims.Unplaced(group)
	c.mu.Lock()
	was := c.evicting[group]
	delete(c.evicting, group)
	c.mu.Unlock()
	c.dropInFlight(group)
	*s = state{evictions: s.evictions, owners: s.owners, gone: s.gone}
	if was && c.Freed != nil {
		c.Freed(group)
	}
}

// retain keeps the number of evictions of a gang that has no pods now: those of a job
// that is suspended are deleted before it is resumed.
func (c *Controller) retain(key gang.Key, s *state) {
	now := c.Clock.Now()
	if s.gone.IsZero() {
		s.gone = now
	}
	left := maxGrace - now.Sub(s.gone)
	if s.evictions == 0 || left <= 0 {
		delete(c.gangs, key)
		return
	}
	c.queue.AddAfter(key, left)
}

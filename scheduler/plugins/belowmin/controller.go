// Package belowmin deals with gangs of which too few members have places, for too
// long: members that wait for others that do not come hold their places for
// nothing.
//
// There are two such cases. A gang that ran and lost members is treated as it
// chose ([Choice]). One that was never whole, because a member that was decided
// on could not be bound, is no gang at all; what there is of it is taken back,
// unless the gang is to be ignored.
package belowmin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

const (
	// settle is how long changes of a gang are gathered before they are looked at.
	settle = 200 * time.Millisecond
	// longest bounds the grace of a gang that was taken back again and again.
	longest = time.Hour
	// recently is how old the first binding of a gang that was never whole may be
	// when it is first seen below its minimum, in multiples of its grace.
	recently = 10
	// look is how often a job that was suspended is looked at.
	look = time.Second
)

// Reasons of the events on gangs and jobs.
const (
	ReasonBelowMin   = "GangBelowMinimum"    // and is left alone
	ReasonRolledBack = "GangRolledBack"      // it was never whole
	ReasonEvicted    = "GangEvicted"         // it was whole once
	ReasonResumed    = suspend.ReasonResumed // its job may create pods again
	ReasonFailed     = "GangPolicyFailed"    // its places cannot be taken
)

// Gangs is what is known of gangs; *gangcache.Cache is it.
type Gangs interface {
	// Pods lists the pods of a gang, those that have ended included.
	Pods(key gang.Key) []*corev1.Pod
	// Completed is how many members of it need no place any more.
	Completed(key gang.Key) int32
	// Required returns how many members must have a place now; ok is false for a gang
	// that is not declared.
	Required(key gang.Key) (count, priority int32, ok bool)
}

// Objects reads the API objects of gangs. The object itself is nil where only
// its identity is known.
type Objects interface {
	Get(key gang.Key) (object gangcache.Object, u *unstructured.Unstructured, ok bool)
}

// Controller watches over gangs below their minimum.
type Controller struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Gangs   Gangs
	Objects Objects
	// Owned tells whether pods exist because of which a job cannot be resumed yet.
	Owned func(suspend.Job) bool
	// Synced tells whether every pod and object is known.
	Synced   func() bool
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	// Freed is called when a gang holds nothing any more and may be tried as a
	// whole; it may be nil.
	Freed func(group types.NamespacedName)
	// Keep reports whether a job stays suspended though its pods are gone; it may be
	// nil.
	Keep func(job types.UID) bool
	// Jobs suspends and resumes jobs. Complete makes it; others may use it, too.
	Jobs *suspend.Suspender

	queue workqueue.TypedRateLimitingInterface[gang.Key]
	count counters

	mu       sync.Mutex
	profiles map[string]Args
	leaving  map[types.NamespacedName]bool // gangs whose places are being taken
	ways     map[types.NamespacedName]*way

	// Touched by the one worker only.
	gangs map[gang.Key]*state
}

// Complete readies the controller. It must be called before any other method.
func (c *Controller) Complete() *Controller {
	c.queue = engine.NewRetryQueue[gang.Key]()
	c.count = newCounters()
	c.profiles, c.leaving, c.ways = map[string]Args{}, map[types.NamespacedName]bool{}, map[types.NamespacedName]*way{}
	c.gangs = map[gang.Key]*state{}
	c.Jobs = &suspend.Suspender{
		Dynamic: c.Dynamic, Recorder: c.Recorder, Clock: c.Clock, Owned: c.Owned, Synced: c.Synced, Keep: c.Keep,
	}
	return c
}

// Touch says that something about a gang may have changed.
func (c *Controller) Touch(key gang.Key) { c.queue.AddAfter(key, settle) }

// Run works until ctx ends. Only the replica that schedules may run it.
func (c *Controller) Run(ctx context.Context) {
	if err := c.Jobs.Recall(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot tell which jobs to resume; retrying")
		c.queue.AddRateLimited(gang.Key{})
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		<-ctx.Done()
		c.queue.ShutDown()
	})
	work.Go(func() { c.tick(ctx) })
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		err := c.reconcile(ctx, key)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot deal with a gang below its minimum; retrying", "gang", key.String())
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// tick has suspended jobs looked at. No event may tell that the last pod of a
// job is gone, if a scheduler before this one suspended it.
func (c *Controller) tick(ctx context.Context) {
	ticker := c.Clock.NewTicker(look)
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
		c.queue.AddAfter(key, look)
		return nil
	}
	pods := c.Gangs.Pods(key)
	need, _, declared := c.Gangs.Required(key)
	s := c.gangs[key]
	if s == nil {
		s = &state{}
		c.gangs[key] = s
	}
	t := count(pods, need)
	s.adopt(pods)
	switch {
	case len(t.placed) == 0:
		c.free(key, s)
		if len(pods) == 0 {
			c.remember(key, s)
		}
		return nil
	case s.taking: // whatever it is now: half of its places are gone
	case !declared || len(t.placed) >= t.need:
		*s = state{whole: uids(t.placed)}
		c.forget(groupOf(key))
		return nil
	case c.Gangs.Completed(key) > 0:
		// It is on its way out. Whoever has not completed may still work.
		s.below = time.Time{}
		c.forget(groupOf(key))
		return nil
	}
	return c.belowMin(ctx, key, s, t, pods)
}

// belowMin waits for the grace to pass, and then does what is to be done. While
// members are on their way nothing is, and the time does not count: it says
// nothing about the gang if an API server takes long.
func (c *Controller) belowMin(ctx context.Context, key gang.Key, s *state, t tally, pods []*corev1.Pod) error {
	a, ok := c.args(pods)
	if !ok {
		return nil // the plugin is disabled
	}
	now := c.Clock.Now()
	spent, onTheWay := c.onTheWay(groupOf(key))
	if s.below.IsZero() {
		s.below, s.first, s.spent = now, now, spent
	}
	never := s.neverWhole(t, pods, onTheWay, recently*a.StartGrace.Duration)
	grace := a.Grace.Duration
	if never {
		grace = a.StartGrace.Duration
	}
	grace = min(grace<<min(s.taken, 10), max(longest, grace))
	if !s.taking {
		if onTheWay {
			return nil // with the last one that arrives it is looked at again
		}
		if left := grace - (now.Sub(s.below) - (spent - s.spent)); left > 0 {
			c.queue.AddAfter(key, left)
			return nil
		}
	}
	choice, doubt := c.Of(key)
	if doubt != "" {
		c.tell(key, s, pods, ReasonFailed, fmt.Sprintf("annotation %s: %q is none of %s, %s and %s; taking it for %s", Annotation, doubt, Hold, Evict, Ignore, choice))
	}
	if !s.taking && choice != Ignore && (never || choice == Evict) {
		if sure, err := c.confirmed(ctx, t); err != nil {
			return err
		} else if !sure {
			c.queue.AddAfter(key, look)
			return nil
		}
		if _, onTheWay = c.onTheWay(groupOf(key)); onTheWay {
			return nil // one has set out meanwhile
		}
	}
	state := fmt.Sprintf("%d of %d members that the gang needs have places", len(t.placed), t.need)
	switch {
	case s.taking:
		return c.take(ctx, key, s, t)
	case choice == Ignore:
		return nil
	case never:
		c.begin(key, s, t.placed, actionRolledBack)
		c.tell(key, s, pods, ReasonRolledBack,
			fmt.Sprintf("%s, and it was never whole: for %s, %s. All give their places back, and the gang waits as a whole", state, grace, t.unbound()))
		return c.take(ctx, key, s, t)
	case choice == Evict:
		c.begin(key, s, t.placed, actionEvicted)
		c.tell(key, s, pods, ReasonEvicted,
			fmt.Sprintf("%s, for %s. By policy %s all give their places back, and the gang waits as a whole", state, grace, Evict))
		return c.take(ctx, key, s, t)
	}
	if doubt == "" && c.tell(key, s, pods, ReasonBelowMin,
		fmt.Sprintf("%s, for %s. By policy %s they keep them; annotation %s: %s would give them back", state, grace, Hold, Annotation, Evict)) {
		c.count.actions.WithLabelValues(actionHeld).Inc()
	}
	return nil
}

// begin keeps new members from joining those that are to leave.
func (c *Controller) begin(key gang.Key, s *state, placed []*corev1.Pod, action string) {
	s.taking, s.begun, s.rolls = true, false, action == actionRolledBack
	s.taken++
	s.owners = owners(placed)
	c.count.actions.WithLabelValues(action).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving[groupOf(key)] = true
}

// free notes that nobody of a gang has a place.
func (c *Controller) free(key gang.Key, s *state) {
	group := groupOf(key)
	c.mu.Lock()
	was := c.leaving[group]
	delete(c.leaving, group)
	c.mu.Unlock()
	c.forget(group)
	*s = state{taken: s.taken, owners: s.owners, gone: s.gone}
	if was && c.Freed != nil {
		c.Freed(group)
	}
}

func groupOf(key gang.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.VirtualName()}
}

// tell writes an event on the object of a gang, or where it has none on its
// first pod, unless it says what was said already.
func (c *Controller) tell(key gang.Key, s *state, pods []*corev1.Pod, reason, text string) bool {
	if s.told == reason+text {
		return false
	}
	s.told = reason + text
	if object, _, ok := c.Objects.Get(key); ok {
		c.Recorder.Eventf(&corev1.ObjectReference{
			APIVersion: object.Kind.GroupVersion().String(), Kind: object.Kind.Kind, Namespace: key.Namespace, Name: object.Key.Name, UID: object.UID,
		}, nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", text)
	} else if len(pods) > 0 {
		c.Recorder.Eventf(pods[0], nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", text)
	}
	return true
}

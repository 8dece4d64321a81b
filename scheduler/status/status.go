// Package status shows users the state of their gangs where they look: in the
// status of the gang's object, in its events and, for a gang that the engine
// cannot even try, in the PodScheduled condition of its pods.
package status

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	// debounce is how long changes of a gang are gathered before its status is
	// written: the binds of one gang make one write, not one each.
	debounce = 200 * time.Millisecond
	// patience is how long a gang may be incomplete before that is reported.
	// Controllers create a gang's object and its pods one after another, and a
	// report in between would alarm for nothing.
	patience = 2 * time.Second
)

// Gangs is the cache of gangs; *gangcache.Cache implements it.
type Gangs interface {
	// Pods lists the pods of a gang, those that have ended included.
	Pods(key gang.Key) []*corev1.Pod
	// MinCount returns the number of members that it needs; 0 if that is not known.
	MinCount(key gang.Key) int32
	// Lack returns why a gang cannot be tried; without a text where it can.
	Lack(key gang.Key) gangcache.Lack
	// MissingClaim describes what a member claims and does not exist; empty for nothing.
	MissingClaim(pod *corev1.Pod) string
	// Ambiguous returns what its declaration leaves open; empty where nothing.
	Ambiguous(key gang.Key) string
}

// Objects reads the API objects of gangs. The object itself is nil where only
// its identity is known.
type Objects interface {
	Get(key gang.Key) (object gangcache.Object, u *unstructured.Unstructured, ok bool)
}

// Config has the dependencies of a controller.
type Config struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Gangs   Gangs
	Objects Objects
	// VirtualGroup returns the virtual group of a gang with the engine's conditions.
	VirtualGroup func(namespace, name string) (*schedulingv1beta1.PodGroup, bool)
	// LastReported returns what was reported on a gang that was tried and waits; ok
	// is false for any other.
	LastReported func(group types.NamespacedName) (reason reasons.Reason, ok bool)
	// Next reports whether a gang waits for nothing but its turn, behind others that are being placed.
	Next func(gang.Key) bool
	// Activate has the engine look at a pod, and its gang, again.
	Activate func(*corev1.Pod)
	// Idle waits while there is something to do that matters more.
	Idle func(context.Context)
	// Synced reports whether every pod and object is known.
	Synced func() bool
	// Ours reports whether a scheduler name is ours.
	Ours     func(schedulerName string) bool
	Recorder events.EventRecorder
	Clock    clock.Clock
	// Panics counts the gangs over which the controller panics; nil where none counts.
	Panics *engine.Panics
}

// Controller keeps the users' view of every gang current. Its writes are
// bounded: at most one status patch a debounce interval and gang, and one event
// and one condition a pod for each change of the reason.
type Controller struct {
	Config

	guard *engine.Guard
	queue *engine.RetryQueue[gang.Key]

	// The fields below belong to the one worker.

	incomplete map[gang.Key]pending          // why gangs cannot be tried
	ambiguous  map[gang.Key]pending          // what their declarations leave open
	unclaimed  map[gang.Key]bool             // those of which a member claims what does not exist
	notBound   map[gang.Key]pending          // why members are refused the nodes that were found for them
	limiters   map[gang.Key]*reasons.Limiter // of the events on incomplete and ambiguous gangs
	bare       map[gang.Key]bareMembers
	phases     map[gang.Key]pending // phases that are not worth writing yet
	ours       map[gang.Key]bool    // groups that have or had pods of ours
	written    map[gang.Key]written
	rewrites   map[gang.Key]*reasons.Limiter // of the statuses that another writer had changed
}

// pending is a text that is to be reported, since when, and whether it was.
type pending struct {
	text     string
	since    time.Time
	reported bool
	lack     gangcache.Lack // that the text is of; empty of other texts
}

// New returns a controller, which does nothing before [Controller.Run].
func New(config Config) *Controller {
	return &Controller{
		Config: config, guard: config.Panics.Guard("status"), queue: engine.NewRetryQueue(func(key gang.Key) string { return key.Namespace }),
		incomplete: map[gang.Key]pending{}, ambiguous: map[gang.Key]pending{}, unclaimed: map[gang.Key]bool{}, notBound: map[gang.Key]pending{}, limiters: map[gang.Key]*reasons.Limiter{},
		bare: map[gang.Key]bareMembers{}, phases: map[gang.Key]pending{}, ours: map[gang.Key]bool{},
		written: map[gang.Key]written{}, rewrites: map[gang.Key]*reasons.Limiter{},
	}
}

// Touch enqueues a gang that may have changed.
func (c *Controller) Touch(key gang.Key) { c.queue.Touch(key, debounce) }

// Run works until ctx ends. Only the replica that schedules may run it.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		c.Idle(ctx)
		if _, err := c.guard.Do(logger, key.String(), func() string { return c.version(key) }, func() error { return c.reconcile(ctx, key) }); err != nil {
			logger.Error(err, "Cannot report the state of a gang; retrying", "gang", key.String())
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// version is that of what a gang is reported from.
func (c *Controller) version(key gang.Key) string {
	version := engine.VersionOf(c.Gangs.Pods(key)...)
	if _, u, ok := c.Objects.Get(key); ok && u != nil {
		version += " " + u.GetResourceVersion()
	}
	return version
}

func (c *Controller) reconcile(ctx context.Context, key gang.Key) error {
	if !c.Synced() {
		c.queue.AddAfter(key, patience)
		return nil
	}
	members := c.Gangs.Pods(key)
	c.reportAmbiguous(key, members)
	c.reportNotBound(key, members)
	if err := c.explainWait(ctx, key, members); err != nil {
		return err
	}
	return c.patchStatus(ctx, key, members)
}

// Package status tells users how their gangs stand, where they look: in the
// status of the gang's object, in its events and, for a gang that the engine
// cannot even try, in the PodScheduled condition of its pods.
package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	// settle is how long changes of a gang are gathered before its status is
	// written: the binds of one gang make one write, not one each.
	settle = 200 * time.Millisecond
	// patience is how long a gang may be incomplete before that is reported.
	// Controllers create a gang's object and its pods one after another, and a
	// report in between would alarm for nothing.
	patience = 2 * time.Second

	// ReasonWaiting is the reason of PodScheduled=False, and of the event, for
	// a gang that cannot be tried. It is not Unschedulable, which cluster
	// autoscalers would answer with nodes that do not help.
	ReasonWaiting = "GangWaiting"
	// ReasonScheduled is the reason of the event when all of it has a place. When
	// it has not, the reason is the engine's.
	ReasonScheduled = "Scheduled"
	// ReasonDoubtful is the reason of the event when a gang's declaration says
	// more than what is heeded.
	ReasonDoubtful = "GangDoubtful"
)

// Gangs is what is known of gangs; *gangcache.Cache is it.
type Gangs interface {
	// Pods lists the pods of a gang, those that have ended included.
	Pods(key gang.Key) []*corev1.Pod
	// MinCount returns how many members it needs; 0 if that is not known.
	MinCount(key gang.Key) int32
	// Incomplete says why a gang cannot be tried; empty where it can.
	Incomplete(key gang.Key) string
	// Ambiguous returns what is odd about its declaration; empty where nothing is.
	Ambiguous(key gang.Key) string
}

// Objects reads the API objects of gangs. The object itself is nil where only
// its identity is known.
type Objects interface {
	Get(key gang.Key) (object gangcache.Object, u *unstructured.Unstructured, ok bool)
}

// Controller keeps the users' view of every gang current. Its writes are
// bounded: at most one status patch a settle interval and gang, and one event
// and one condition a pod for each change of the reason.
type Controller struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Gangs   Gangs
	Objects Objects
	// Word returns the virtual group of a gang with what the engine says of it.
	Word func(namespace, name string) (*schedulingv1beta1.PodGroup, bool)
	// Said returns what users were told of a gang that was tried and waits; ok is
	// false for any other.
	Said func(namespace, name string) (note reasons.Reason, ok bool)
	// Synced tells whether every pod and object is known.
	Synced func() bool
	// Ours tells the scheduler names that are ours.
	Ours     func(schedulerName string) bool
	Recorder events.EventRecorder
	Clock    clock.Clock

	queue workqueue.TypedRateLimitingInterface[gang.Key]
	// Touched by the one worker only.
	waiting  map[gang.Key]wait
	told     map[gang.Key]*reasons.Limiter // how often users were told of a gang that cannot be tried, or is doubtful
	doubtful map[gang.Key]wait
	phases   map[gang.Key]wait // phases that are not worth writing yet
	ours     map[gang.Key]bool // groups that pods of ours are or were members of
	written  map[gang.Key]written
	fights   map[gang.Key]*reasons.Limiter // how often a status was written again that somebody else had changed
	silent   map[gang.Key]silence
}

// wait is a text that is to be told, since when, and whether it was.
type wait struct {
	reason   string
	since    time.Time
	reported bool
}

// Complete readies the controller. It must be called before any other method.
func (c *Controller) Complete() *Controller {
	c.queue = engine.NewRetryQueue[gang.Key]()
	c.waiting, c.doubtful, c.phases = map[gang.Key]wait{}, map[gang.Key]wait{}, map[gang.Key]wait{}
	c.told, c.fights = map[gang.Key]*reasons.Limiter{}, map[gang.Key]*reasons.Limiter{}
	c.ours, c.written, c.silent = map[gang.Key]bool{}, map[gang.Key]written{}, map[gang.Key]silence{}
	return c
}

// Touch says that something about a gang may have changed.
func (c *Controller) Touch(key gang.Key) { c.queue.AddAfter(key, settle) }

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
		if err := c.reconcile(ctx, key); err != nil {
			logger.Error(err, "Cannot report the state of a gang; retrying", "gang", key.String())
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *Controller) reconcile(ctx context.Context, key gang.Key) error {
	if !c.Synced() {
		c.queue.AddAfter(key, patience)
		return nil
	}
	members := c.Gangs.Pods(key)
	c.doubt(key, members)
	if err := c.explainWait(ctx, key, members); err != nil {
		return err
	}
	return c.patchStatus(ctx, key, members)
}

// due reports whether a text has been true for longer than patience; told once,
// it is due no more. Where the time has not come, the gang is looked at again.
func (c *Controller) due(texts map[gang.Key]wait, key gang.Key, text string) bool {
	w := texts[key]
	if w.reason != text {
		w = wait{reason: text, since: c.Clock.Now()}
	}
	left := patience - c.Clock.Since(w.since)
	if left > 0 {
		texts[key] = w
		c.queue.AddAfter(key, left)
		return false
	}
	told := w.reported
	w.reported = true
	texts[key] = w
	return !told
}

// doubt tells once what is odd about a gang's declaration.
func (c *Controller) doubt(key gang.Key, members []*corev1.Pod) {
	text := c.Gangs.Ambiguous(key)
	if text == "" || len(members) == 0 {
		delete(c.doubtful, key)
		return
	}
	c.say(c.doubtful, key, members, ReasonDoubtful, text)
}

// explainWait reports a gang that has been incomplete for longer than patience.
func (c *Controller) explainWait(ctx context.Context, key gang.Key, members []*corev1.Pod) error {
	var unbound []*corev1.Pod
	for _, pod := range members {
		if pod.Spec.NodeName == "" && !ended(pod) && pod.DeletionTimestamp == nil {
			unbound = append(unbound, pod)
		}
	}
	reason := c.Gangs.Incomplete(key)
	if len(members) == 0 {
		c.untell(key)
		delete(c.silent, key)
	}
	if reason == "" || len(unbound) == 0 {
		delete(c.waiting, key)
		return c.explainLate(ctx, key, unbound)
	}
	tell := unbound
	if !c.say(c.waiting, key, unbound, ReasonWaiting, reason) {
		tell = c.untold(key, unbound)
	}
	for _, pod := range tell {
		if err := c.patchCondition(ctx, pod, ReasonWaiting, reason); err != nil {
			return fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// explainLate tells members that came after their gang was tried why it waits.
// The engine would tell them when it tries the gang again, which may be a while.
func (c *Controller) explainLate(ctx context.Context, key gang.Key, unbound []*corev1.Pod) error {
	note, waits := c.Said(key.Namespace, key.VirtualName())
	if !waits {
		delete(c.silent, key)
		return nil
	}
	for _, pod := range c.untold(key, unbound) {
		if err := c.patchCondition(ctx, pod, corev1.PodReasonUnschedulable, note.Unscheduled()); err != nil {
			return fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// say tells users of a gang, by an event, what has been true for a while, unless
// they were told too often already: what changes all the time is not told all the
// time. It reports whether they have been told.
func (c *Controller) say(texts map[gang.Key]wait, key gang.Key, pods []*corev1.Pod, reason, text string) bool {
	if w := texts[key]; (!w.reported || w.reason != text) && !c.mayTell(key) {
		return false
	}
	if c.due(texts, key, text) {
		c.told[key].Record(c.Clock.Now())
		c.Recorder.Eventf(c.subject(key, pods), nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", text)
	}
	return texts[key].reported
}

// mayTell reports whether users of a gang were not told too often already. Where
// they were, the gang is looked at again when they may be.
func (c *Controller) mayTell(key gang.Key) bool {
	if c.told[key] == nil {
		c.told[key] = &reasons.Limiter{}
	}
	left := c.told[key].Wait(c.Clock.Now())
	if left > 0 {
		c.queue.AddAfter(key, left)
	}
	return left == 0
}

// untell forgets how often users of a gang without pods were told, though not at
// once: pods that are created and deleted again and again are one gang's.
func (c *Controller) untell(key gang.Key) {
	switch pace := c.told[key]; {
	case pace == nil:
	case pace.Idle(c.Clock.Now()):
		delete(c.told, key)
	default:
		c.queue.AddAfter(key, time.Minute)
	}
}

// subject is what an event about a gang is attached to: its object, or the
// first of its pods that waits, or the first.
func (c *Controller) subject(key gang.Key, pods []*corev1.Pod) runtime.Object {
	if ref, ok := c.object(key); ok {
		return ref
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && !ended(pod) && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	return pods[0]
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

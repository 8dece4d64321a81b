// Package status tells users how their gangs stand, where they look: in the
// status of the gang's object, in its events and, for a gang that the engine
// cannot even try, in the PodScheduled condition of its pods.
package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
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
)

// Members lists the pods of a gang, those that have ended included.
type Members func(key gang.Key) []*corev1.Pod

// Objects reads the API objects of the dialect that has a status to write.
type Objects interface {
	// HasSynced reports whether every object is known, or none is served.
	HasSynced() bool
	Get(namespace, name string) (*unstructured.Unstructured, bool)
}

// Incomplete says why a gang cannot be tried; empty where it can.
type Incomplete func(key gang.Key) string

// Controller keeps the users' view of every gang current. Its writes are
// bounded: at most one status patch a settle interval and gang, and one event
// and one condition a pod for each change of the reason.
type Controller struct {
	Client     kubernetes.Interface
	Dynamic    dynamic.Interface
	Members    Members
	Objects    Objects
	Synced     func() bool // whether Members knows all pods
	Incomplete Incomplete
	Recorder   events.EventRecorder
	Clock      clock.Clock

	queue workqueue.TypedRateLimitingInterface[gang.Key]
	// Touched by the one worker only.
	waiting map[gang.Key]wait
	ours    map[gang.Key]bool // groups that pods of ours are or were members of
}

// wait is a reason why a gang cannot be tried, and since when.
type wait struct {
	reason   string
	since    time.Time
	reported bool
}

// Complete readies the controller. It must be called before any other method.
func (c *Controller) Complete() *Controller {
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[gang.Key]())
	c.waiting, c.ours = map[gang.Key]wait{}, map[gang.Key]bool{}
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
	if !c.Synced() || (key.Dialect == gang.SchedulerPlugins && !c.Objects.HasSynced()) {
		c.queue.AddAfter(key, patience)
		return nil
	}
	members := c.Members(key)
	if key.Dialect == gang.SchedulerPlugins {
		if err := c.patchPodGroup(ctx, key, members); err != nil {
			return err
		}
	}
	return c.explainWait(ctx, key, members)
}

// explainWait reports a gang that has been incomplete for longer than patience.
func (c *Controller) explainWait(ctx context.Context, key gang.Key, members []*corev1.Pod) error {
	var unbound []*corev1.Pod
	for _, pod := range members {
		if pod.Spec.NodeName == "" && !ended(pod) && pod.DeletionTimestamp == nil {
			unbound = append(unbound, pod)
		}
	}
	reason := c.Incomplete(key)
	if reason == "" || len(unbound) == 0 {
		delete(c.waiting, key)
		return nil
	}
	w := c.waiting[key]
	if w.reason != reason {
		w = wait{reason: reason, since: c.Clock.Now()}
		c.waiting[key] = w
	}
	if left := patience - c.Clock.Since(w.since); left > 0 {
		c.queue.AddAfter(key, left)
		return nil
	}
	if !w.reported {
		var subject runtime.Object = unbound[0]
		if object, ok := c.object(key); ok {
			subject = object
		}
		c.Recorder.Eventf(subject, nil, corev1.EventTypeWarning, ReasonWaiting, "Scheduling", "%s", reason)
		w.reported = true
		c.waiting[key] = w
	}
	for _, pod := range unbound {
		if err := c.patchCondition(ctx, pod, reason); err != nil {
			return fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	// ReasonWaiting is the reason of PodScheduled=False, and of the event, for
	// a gang that cannot be tried. It is not Unschedulable, which cluster
	// autoscalers would answer with nodes that do not help.
	ReasonWaiting = "GangWaiting"
	// ReasonScheduled is the reason of the event when all members that the gang
	// needs have a node. When they have not, the reason is the engine's.
	ReasonScheduled = "Scheduled"
	// ReasonNotBound is the reason of the event when the gang had nodes, and the API server or a plugin refused them to a member.
	ReasonNotBound = "FailedBinding"
	// ReasonAmbiguous is the reason of the event when a gang's declaration has more
	// than what is applied.
	ReasonAmbiguous = "AmbiguousGang"
)

// ReportDecision reports a decision of the engine as an event on the gang's object,
// or on one of its pods where it has none.
func (c *Controller) ReportDecision(group *schedulingv1beta1.PodGroup) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return
	}
	c.Touch(key)
	regarding := c.regarding(key, c.Gangs.Pods(key))
	condition := apimeta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case regarding == nil || condition == nil:
	case condition.Status == metav1.ConditionTrue:
		c.Recorder.Eventf(regarding, nil, corev1.EventTypeNormal, ReasonScheduled, "Scheduling", "found a node for every member that the gang needs")
	default:
		c.Recorder.Eventf(regarding, nil, corev1.EventTypeWarning, condition.Reason, "Scheduling", "%s", condition.Message)
	}
}

// notify writes an event with a text that has been true for longer than patience,
// once, unless the users of the gang were notified too often: what changes all the
// time is not reported all the time. It returns whether the text was reported.
func (c *Controller) notify(texts map[gang.Key]pending, key gang.Key, pods []*corev1.Pod, reason, text string) bool {
	if p := texts[key]; (!p.reported || p.text != text) && !c.allowed(key) {
		return false
	}
	if c.due(texts, key, text) {
		c.limiters[key].Record(c.Clock.Now())
		c.Recorder.Eventf(c.regarding(key, pods), nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", text)
	}
	return texts[key].reported
}

// due reports whether a text has been true for longer than patience and was not
// reported. Before that time the gang is enqueued for it.
func (c *Controller) due(texts map[gang.Key]pending, key gang.Key, text string) bool {
	p := texts[key]
	if p.text != text {
		p = pending{text: text, since: c.Clock.Now()}
	}
	left := patience - c.Clock.Since(p.since)
	if left > 0 {
		texts[key] = p
		c.queue.AddAfter(key, left)
		return false
	}
	reported := p.reported
	p.reported = true
	texts[key] = p
	return !reported
}

// allowed reports whether users of a gang may be notified now. If not, the gang is
// enqueued for the time when they may.
func (c *Controller) allowed(key gang.Key) bool {
	if c.limiters[key] == nil {
		c.limiters[key] = &reasons.Limiter{}
	}
	left := c.limiters[key].Wait(c.Clock.Now())
	if left > 0 {
		c.queue.AddAfter(key, left)
	}
	return left == 0
}

// dropLimiter drops the limiter of a gang without pods, though not before it is
// idle: pods that are created and deleted again and again are one gang's.
func (c *Controller) dropLimiter(key gang.Key) {
	switch limiter := c.limiters[key]; {
	case limiter == nil:
	case limiter.Idle(c.Clock.Now()):
		delete(c.limiters, key)
	default:
		c.queue.AddAfter(key, time.Minute)
	}
}

// regarding returns what an event on a gang is attached to: its object, or the
// first of its pods that waits, or the first; nil where there is none.
func (c *Controller) regarding(key gang.Key, pods []*corev1.Pod) runtime.Object {
	if object, _, ok := c.Objects.Get(key); ok {
		return object.Reference(key)
	}
	for _, pod := range pods {
		if gang.AwaitsNode(pod) {
			return pod
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return pods[0]
}

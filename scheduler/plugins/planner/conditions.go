package planner

import (
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// Conditions keeps the conditions that the engine sets on gangs, and reports their changes: one event for each, however often the gang is
// tried. The reason for which a gang waits comes from the store of reasons, if it has one: the engine's message is that too few
// members fit, and not what is missing.
type Conditions struct {
	groups  *engine.VirtualGroups
	reasons *reasons.Store
	report  func(*schedulingv1beta1.PodGroup)
	touch   func(gang.Key)
}

// NewConditions returns the conditions of virtual groups. Report makes an event of the condition of a group; touch is called when
// the status of a gang may have changed.
func NewConditions(groups *engine.VirtualGroups, store *reasons.Store, report func(*schedulingv1beta1.PodGroup), touch func(gang.Key)) *Conditions {
	return &Conditions{groups: groups, reasons: store, report: report, touch: touch}
}

// GroupCondition implements engine.ConditionSink.
func (c *Conditions) GroupCondition(namespace, name, kind string) *metav1.Condition {
	return c.groups.Condition(namespace, name, kind)
}

// SetCondition implements engine.ConditionSink.
func (c *Conditions) SetCondition(namespace, name string, condition metav1.Condition) (*schedulingv1beta1.PodGroup, bool) {
	id := types.NamespacedName{Namespace: namespace, Name: name}
	if condition.Reason == schedulingv1beta1.PodGroupReasonSchedulerError && Spurious(condition.Message) {
		condition.Reason, condition.Message = schedulingv1beta1.PodGroupReasonUnschedulable, membersGone
		if reason, ok := c.reasons.LastReported(id); ok {
			condition.Message = reason.Finding.Message
		}
	}
	waits := condition.Status == metav1.ConditionFalse && condition.Reason == schedulingv1beta1.PodGroupReasonUnschedulable
	reason, fresh, reported := c.reasons.TakeReport(id)
	if untried := strings.HasSuffix(condition.Message, membersGone); waits && !untried && (!reported || reason.Required == 0) && !c.scheduled(id) { // only the engine has a message
		c.reasons.Report(id, reasons.Reason{Finding: answer.Finding{Code: answer.FitsNotPlaced, Message: condition.Message}}, false)
		reason, fresh, reported = c.reasons.TakeReport(id)
	}
	if waits && reported {
		condition.Message = reason.Text()
	}
	group, changed := c.groups.SetCondition(namespace, name, condition)
	switch {
	case group == nil:
		c.reasons.Clear(id) // it was deleted, and perhaps before this was reported
	case waits && reported && !fresh: // reported already, or too soon to report
		if key, err := gang.ParseVirtualName(id.Namespace, id.Name); err == nil && changed {
			c.touch(key)
		}
	case changed:
		c.report(group)
	case waits && fresh, !waits && reported && !reason.AboveMin && condition.Status == metav1.ConditionTrue:
		// The condition stays True once the gang was placed. Users are still notified
		// that it waits for members, and that it has them.
		group = group.DeepCopy()
		apimeta.SetStatusCondition(&group.Status.Conditions, condition)
		c.report(group)
	}
	return group, changed
}

// scheduled reports whether the engine has placed a gang before.
func (c *Conditions) scheduled(id types.NamespacedName) bool {
	group, ok := c.groups.Get(id.Namespace, id.Name)
	return ok && apimeta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
}

// GroupSink is the store of virtual groups as the gang cache writes it. A group that is deleted is gone or lacks members, so its reason is
// deleted, too.
type GroupSink struct {
	*engine.VirtualGroups
	Reasons *reasons.Store
}

// Delete implements gangcache.Sink.
func (s GroupSink) Delete(namespace, name string) {
	s.VirtualGroups.Delete(namespace, name)
	s.Reasons.Clear(types.NamespacedName{Namespace: namespace, Name: name})
}
